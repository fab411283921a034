"""Whether the problems are there, unchanged and enough, and whether the reward can judge them."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from full_scale.data import verify
from full_scale.data.manifest import NAME as MANIFEST
from full_scale.preflight.check import Check, failed, not_checked, ok
from full_scale.preflight.job import Job

DATA, HASHES, REWARD = "data", "data hashes", "reward"
COLUMNS = ("data_source", "prompt", "reward_model")
PREPARE = "m2po-lab data prepare --out"
TRUTH, RIGHT, WRONG = "408", r"So the answer is \boxed{408}.", r"So the answer is \boxed{407}."


def check_data(job: Job) -> list[Check]:
    """Columns and rows of every file that is named, and the hashes of prepared folders."""
    training, tests = (_paths(job.at(f"data.{name}_files")) for name in ("train", "val"))
    problems, rows = [], dict.fromkeys((*training, *tests), 0)
    for path in rows:
        try:
            rows[path] = _rows(path)
        except (OSError, ValueError, pa.ArrowException) as error:
            problem = " ".join(str(error).split())[:200]
            problems.append(failed(DATA, f"{path}: {problem}", f"{PREPARE} {path.parent}"))
    count = sum(rows[path] for path in training)
    if not problems:
        problems = [failed(DATA, found, remedy) for found, remedy in _too_few(job, count)]
    found = f"{count} problems to train on, {sum(rows[path] for path in tests)} to test"
    hashes = [_hashes(folder) for folder in sorted({path.parent for path in rows})]
    return [*(problems or [ok(DATA, found)]), *hashes]


def _paths(files: Any) -> list[Path]:
    return [Path(each).expanduser() for each in ([files] if isinstance(files, str) else files)]


def _rows(path: Path) -> int:
    """Count the rows of a file that verl can read.

    Raises:
        ValueError: a column is missing.
    """
    if missing := set(COLUMNS) - set(pq.read_schema(path).names):
        raise ValueError(f"no column {', '.join(sorted(missing))}")
    return int(pq.read_metadata(path).num_rows)


def _too_few(job: Job, rows: int) -> Iterator[tuple[str, str]]:
    prompts, trainer = job.config.data.train_batch_size, job.config.trainer
    if rows < prompts:
        yield (
            f"{rows} problems do not fill a batch of {prompts}",
            f"set data.train_batch_size to at most {rows}, or prepare more",
        )
        return
    wanted = trainer.total_training_steps
    steps = rows // prompts * trainer.total_epochs
    if wanted is not None and steps < wanted:
        epochs = math.ceil(wanted / (rows // prompts))
        yield (
            f"{trainer.total_epochs} epochs are {steps} steps, and {wanted} are asked for",
            f"set trainer.total_epochs={epochs}",
        )


def _hashes(folder: Path) -> Check:
    if not (folder / MANIFEST).exists():
        return not_checked(HASHES, f"{folder} was not prepared here and has no {MANIFEST}")
    problems = verify(folder)
    if not problems:
        return ok(HASHES, f"{folder} is what its {MANIFEST} says")
    first = problems[0]
    others = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return failed(HASHES, f"{first.place}: {first.problem}{others}", first.remedy)


def check_reward(job: Job) -> list[Check]:
    """Score a right and a wrong answer with the function that the job will call."""
    from verl.utils.import_utils import load_module

    function = job.config.reward.custom_reward_function
    if not function.path:
        return [
            failed(
                REWARD,
                "verl's own rewards know only its own data sets",
                "set reward.custom_reward_function.path=pkg://full_scale.reward",
            )
        ]
    place = f"{function.path}:{function.name}"
    settings = dict(function.get("reward_kwargs") or {})
    try:
        judge = getattr(load_module(function.path), function.name)
        right, wrong = (
            _score(judge("math", text, TRUTH, {}, **settings)) for text in (RIGHT, WRONG)
        )
    except Exception as error:
        # Whatever is raised here is raised in the job's reward workers.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        remedy = 'pip install -e ".[full-scale]", and see that the function exists'
        return [failed(REWARD, f"{place}: {reason}", remedy)]
    if right <= wrong:
        return [
            failed(
                REWARD,
                f"{place} gives {right:g} for a right answer and {wrong:g} for a wrong one",
                "set reward.custom_reward_function.path=pkg://full_scale.reward",
            )
        ]
    return [ok(REWARD, f"{place}: {right:g} for a right answer, {wrong:g} for a wrong one")]


def _score(given: Any) -> float:
    return float(given["score"] if isinstance(given, dict) else given)
