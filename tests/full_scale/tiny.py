"""What turns a recipe for eight GPUs into a job of seconds on the processor."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import jobs
from engines import CPU

from full_scale.cpu_support.model import save_model

RECIPES_OWN = (
    "actor_rollout_ref.actor.policy_loss",
    "actor_rollout_ref.model.path",
    "actor_rollout_ref.rollout.calculate_log_probs",
    "algorithm.",
    "data.train_files",
    "data.val_files",
    "hydra.",
    "reward.custom_reward_function",
    "trainer.default_local_dir",
    "trainer.experiment_name",
    "trainer.logger",
    "trainer.project_name",
    "trainer.save_freq",
    "trainer.test_freq",
    "trainer.val_before_train",
)
"""Settings that a recipe makes and that are to be tried as they are."""
QUEUE = "trainer.v1.colocate_async.num_warmup_batches"


def shrunk(out, steps, **more):
    """Overrides that go with any recipe; only `QUEUE` among `more` makes it stale."""
    given = jobs.settings("-", "-", out, steps, **more)
    kept = [each for each in given if not each.lstrip("+").startswith(RECIPES_OWN)]
    return [*kept, "actor_rollout_ref.rollout.val_kwargs.top_p=1.0"]


def save_problems(folder):
    """Prepared data: sums of two digits, as `m2po-lab data prepare` writes them."""
    raw = {
        "deepscaler": [(f"{a}+{b}=", a + b) for a in range(10) for b in range(10)],
        "amc23": [(f"{a}-{a}=", 0) for a in range(8)],
    }
    for name, rows in raw.items():
        lines = (json.dumps({"question": asked, "answer": str(answer)}) for asked, answer in rows)
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    sources = ",".join(f"{name}={folder / name}.jsonl" for name in raw)
    command = ["data", "prepare", "--out", "data", "--sets", "amc23", "--source", sources]
    done = m2po_lab(folder, *command, "--instruction", "{question}")
    assert done.returncode == 0, done.stderr
    return folder / "data"


def environment(**changes):
    """The processor's platform, with the plugin left to the recipe to load."""
    cpu = CPU | {"VERL_USE_EXTERNAL_MODULES": "full_scale.cpu_support.register"}
    return os.environ | cpu | {"HYDRA_FULL_ERROR": "1"} | changes


def m2po_lab(folder, *arguments, seconds=1800, **changes):
    """Run the command in a folder, in a process group that is killed with all that it started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "m2po_lab", *map(str, arguments)],
        cwd=folder,
        env=environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, error = process.communicate(timeout=seconds)
    finally:
        jobs.kill(process)
    return subprocess.CompletedProcess(arguments, process.returncode, out, error)


@dataclass(frozen=True)
class Launched:
    """A recipe that was launched twice: the second time to go on.

    Attributes:
        folder: where the command ran, with `data` and `runs` in it.
        run: folder of the run.
        first: what the first launch said.
        second: what the second said.
    """

    folder: Path
    run: Path
    first: subprocess.CompletedProcess
    second: subprocess.CompletedProcess

    @property
    def metrics(self):
        """File of each start, in order."""
        return sorted((self.run / "metrics").glob("*.jsonl"))


def launch_twice(folder, recipe, staleness, steps):
    """Launch a recipe with prepared data and a tiny model, then once more for one more step."""
    model = save_model(folder / "model")
    save_problems(folder)
    arguments = shrunk(folder, steps, **{QUEUE: staleness})
    arguments += ["trainer.save_freq=1", "trainer.test_freq=3", "--model", model]
    longer = f"trainer.total_training_steps={steps + 1}"
    first = m2po_lab(folder, "launch", recipe, *arguments)
    second = m2po_lab(folder, "launch", recipe, *arguments, longer)
    return Launched(folder, folder / "runs" / recipe, first, second)
