"""A recipe of the paper, shrunk to the processor: checked, launched, stopped and launched again."""

import json
import subprocess
import sys

import pytest
from tiny import QUEUE, environment, m2po_lab, save_problems, shrunk

from full_scale.cpu_support.model import save_model
from full_scale.recipes import RECIPES
from full_scale.scripts import FOLDER

RECIPE = "qwen2.5-math-7b-m2po-s256"
STALENESS, STEPS, MORE = 2, 3, 1


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("launch")


@pytest.fixture(scope="module")
def arguments(work):
    model, data = save_model(work / "model"), save_problems(work)
    every = ["trainer.save_freq=1", "trainer.test_freq=3"]
    place = ["--model", model, "--data", data]
    return [*shrunk(work, STEPS, **{QUEUE: STALENESS}), *every, *place]


@pytest.fixture(scope="module")
def first(work, arguments):
    return m2po_lab(work, "launch", RECIPE, *arguments)


@pytest.fixture(scope="module")
def second(work, arguments, first):
    longer = f"trainer.total_training_steps={STEPS + MORE}"
    return m2po_lab(work, "launch", RECIPE, *arguments, longer)


def starts(work):
    """Metrics by step of each start of the run, in order."""
    files = sorted((work / "runs" / RECIPE / "metrics").glob("*.jsonl"))
    return [[json.loads(line)["data"] for line in path.open()] for path in files]


def test_the_preflight_finds_nothing_and_says_what_it_cannot_see(first):
    lines = first.stdout.splitlines()
    checks = [line for line in lines if line.startswith(("ok ", "failed ", "not checked "))]
    assert not [line for line in checks if line.startswith("failed")]
    unseen = {line.split(":")[0].split(maxsplit=2)[2] for line in checks if "not checked" in line}
    assert unseen == {"vllm", "GPUs", "GPU memory"}


def test_the_job_ends_well_with_the_plugin_loaded_by_the_recipe_alone(first, work):
    assert first.returncode == 0, first.stdout[-3000:] + first.stderr[-3000:]
    steps = [step for step in starts(work)[0] if "training/global_step" in step]
    assert [step["training/global_step"] for step in steps] == list(range(1, STEPS + 1))
    assert [step["actor/m2po/staleness"] for step in steps] == [0, 1, 2]


def test_a_run_leaves_everything_in_its_folder(first, work):
    run = work / "runs" / RECIPE
    saved = {path.name: {each.name for each in path.iterdir()} for path in run.glob("*/global_*")}
    assert saved.keys() == {"global_step_2", "global_step_3"}
    assert all({"actor", "transfer_queue"} <= names for names in saved.values())
    assert {path.name for path in (run / "validation").iterdir()} == {"0.jsonl", "3.jsonl"}
    assert {path.name for path in (run / "tokens").glob("step_*")} == {
        f"step_0000001_mini_{mini:03d}_rank_00000.parquet" for mini in range(2)
    }
    assert not (work / "outputs").exists()


def test_a_second_launch_goes_on_and_keeps_the_metrics_of_the_first(first, second, work):
    assert second.returncode == 0, second.stdout[-3000:] + second.stderr[-3000:]
    before, after = starts(work)
    assert len(before) == STEPS + 1  # the evaluation before the first step has a line of its own
    steps = [step for step in after if "training/global_step" in step]
    assert [step["training/global_step"] for step in steps] == [STEPS + 1]
    assert steps[0]["actor/m2po/staleness"] == STALENESS


def test_a_job_that_cannot_work_is_not_started(work, arguments):
    wrong = "actor_rollout_ref.actor.ppo_mini_batch_size=3"
    done = m2po_lab(work, "launch", RECIPE, *arguments, wrong, "--out", work / "other")
    assert done.returncode == 1
    assert "data.train_batch_size=8 is no multiple" in done.stdout
    assert "not launched" in done.stderr
    assert not (work / "other").exists()


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
