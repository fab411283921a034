import shlex

import pytest

from full_scale.recipes import RECIPES

RECIPE = "qwen2.5-math-7b-m2po-s256"


def test_the_list_names_every_recipe_with_what_it_runs(call):
    done = call("launch", "--list")
    assert done.returncode == 0
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert lines.keys() == RECIPES.keys()
    assert lines[RECIPE].strip() == RECIPES[RECIPE].summary


def test_an_unknown_recipe_is_one_line_with_near_names(call):
    for command in ("launch", "preflight"):
        done = call(command, "qwen2.5-math-7b-m2po-s255")
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert f"did you mean {RECIPE}" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_name_like_no_other_points_to_the_list(call):
    done = call("launch", "xyz")
    assert done.returncode == 2
    assert done.stderr.strip().endswith("m2po-lab launch --list shows all")


def test_no_recipe_is_one_line(call):
    done = call("launch")
    assert done.returncode == 2
    assert "RECIPE: nothing was named" in done.stderr


@pytest.mark.parametrize("override", ["trainer.nnodes", "trainer.nnodes 2", "="])
def test_what_is_no_setting_is_refused_before_anything_runs(call, override):
    done = call("launch", RECIPE, override, "--print")
    assert done.returncode == 2
    assert repr(override) in done.stderr
    assert "not key=value" in done.stderr


def test_print_shows_a_command_that_a_shell_reads_back(call, tmp_path):
    done = call("launch", RECIPE, "trainer.nnodes=2", "--print", "--data", "a folder", "--out", "o")
    assert done.returncode == 0
    words = shlex.split(done.stdout)
    assert words[:3] == ["python", "-m", "verl.trainer.main_ppo"]
    assert words[-1] == "trainer.nnodes=2"
    assert f"data.train_files='{tmp_path}/a folder/train.parquet'" in words
    assert f"trainer.default_local_dir={tmp_path}/o/checkpoints" in words
    assert not list(tmp_path.iterdir())


def test_paths_are_absolute_and_a_hub_id_stays_one(call, tmp_path):
    local = tmp_path / "weights"
    local.mkdir()
    printed = {
        given: call("launch", RECIPE, "--print", "--model", given).stdout
        for given in ("weights", "Qwen/Qwen2.5-Math-7B")
    }
    assert f"actor_rollout_ref.model.path={local}" in printed["weights"]
    assert "model.path=Qwen/Qwen2.5-Math-7B" in printed["Qwen/Qwen2.5-Math-7B"]


def test_a_file_in_the_place_of_a_folder_is_refused(call, tmp_path):
    (tmp_path / "data").write_text("")
    done = call("launch", RECIPE, "--print")
    assert done.returncode == 2
    assert "--data" in done.stderr
    assert len(done.stderr.splitlines()) == 1
