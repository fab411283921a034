"""A recipe of the paper, shrunk to the processor: checked, launched, and launched again."""

import json
import subprocess
import sys

import pytest
from tiny import QUEUE, environment, m2po_lab, shrunk

from full_scale.recipes import RECIPES
from full_scale.scripts import FOLDER

RECIPE = "qwen2.5-math-7b-m2po-s256"


def starts(launched):
    """Metrics by step of each start of the run, without the line of an evaluation alone."""
    lines = [[json.loads(line)["data"] for line in path.open()] for path in launched.metrics]
    return [[step for step in each if "training/global_step" in step] for each in lines]


def test_the_preflight_finds_nothing_and_says_what_it_cannot_see(launched):
    lines = launched.first.stdout.splitlines()
    checks = [line for line in lines if line.startswith(("ok ", "failed ", "not checked "))]
    assert not [line for line in checks if line.startswith("failed")]
    unseen = {line.split(":")[0].split(maxsplit=2)[2] for line in checks if "not checked" in line}
    assert unseen == {"vllm", "GPUs", "GPU memory"}


def test_the_job_ends_well_with_the_plugin_loaded_by_the_recipe_alone(launched):
    said = launched.first
    assert said.returncode == 0, said.stdout[-3000:] + said.stderr[-3000:]
    steps = starts(launched)[0]
    assert [step["training/global_step"] for step in steps] == [1, 2, 3]
    assert [step["actor/m2po/staleness"] for step in steps] == [0, 1, 2]


def test_a_second_launch_goes_on_and_keeps_the_metrics_of_the_first(launched):
    said = launched.second
    assert said.returncode == 0, said.stdout[-3000:] + said.stderr[-3000:]
    before, after = starts(launched)
    assert len(before) == 3
    assert [step["training/global_step"] for step in after] == [4]
    assert after[0]["actor/m2po/staleness"] == 2


def test_a_run_writes_below_its_folder_and_keeps_two_checkpoints(launched):
    saved = {path.name for path in (launched.run / "checkpoints").glob("global_step_*")}
    assert saved == {"global_step_2", "global_step_3", "global_step_4"}
    for name in saved:
        parts = {each.name for each in (launched.run / "checkpoints" / name).iterdir()}
        assert {"actor", "transfer_queue"} <= parts
    assert "0.jsonl" in {path.name for path in (launched.run / "validation").iterdir()}
    assert {path.name for path in (launched.run / "tokens").glob("step_*")} == {
        f"step_0000001_mini_{mini:03d}_rank_00000.parquet" for mini in range(2)
    }
    assert not (launched.folder / "outputs").exists()


def test_a_job_that_cannot_work_is_not_started(launched):
    wrong = [*shrunk(launched.folder, 3, **{QUEUE: 2}), "data.train_batch_size=9"]
    place = ["--model", launched.folder / "model", "--out", "other"]
    done = m2po_lab(launched.folder, "launch", RECIPE, *wrong, *place)
    assert done.returncode == 1
    assert "data.train_batch_size=9 is no multiple" in done.stdout
    assert "not launched" in done.stderr
    assert not (launched.folder / "other").exists()


@pytest.mark.parametrize("name", [RECIPE, "qwen2.5-32b-grpo-s0"])
def test_a_script_hands_its_settings_to_the_real_command(name, tmp_path):
    done = subprocess.run(
        ["bash", FOLDER / f"{name}.sh", "--cfg", "job"],
        cwd=tmp_path,
        env=environment(PREFLIGHT="no", DATA="d", PATH=f"{sys.prefix}/bin:/usr/bin:/bin"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"experiment_name: {name}" in done.stdout
    assert f"train_files: {tmp_path}/d/train.parquet" in done.stdout
    assert f"nnodes: {RECIPES[name].nodes}" in done.stdout
