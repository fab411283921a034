"""What turns a recipe for eight GPUs into a job of seconds on the processor."""

import json
import os
import subprocess
import sys

import jobs
from engines import CPU

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


def m2po_lab(folder, *arguments, seconds=600, **changes):
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
