"""Workers, GPUs, memory and disk, against what the plan says the job needs."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from full_scale.preflight.check import Check, ProblemError, failed, not_checked, ok
from full_scale.preflight.job import Job
from full_scale.preflight.workers import NAME as WORKERS
from full_scale.preflight.workers import ask_workers, check_workers

GPUS, MEMORY, HOST, DISK = "GPUs", "GPU memory", "host memory", "disk"
NAMES = (WORKERS, GPUS, MEMORY, HOST, DISK)
GB = 1e9
FREE = 0.9
"""Share of a GPU's memory that must be free before the job starts."""


def check_machine(job: Job) -> Iterator[Check]:
    """Ask the workers, and compare what they have with what the job takes."""
    try:
        workers, where = ask_workers(job)
    except ProblemError as error:
        yield failed(WORKERS, error.found, error.remedy)
        yield from (not_checked(name, "no worker could be asked") for name in (GPUS, MEMORY))
    else:
        yield check_workers(workers, where)
        yield from _gpus(job, [gpu for each in workers for gpu in each["gpus"]], where)
    yield _host(job)
    yield _disk(job)


def _gpus(job: Job, found: list[dict[str, Any]], where: str) -> Iterator[Check]:
    if job.on_cpu:
        yield from (not_checked(name, "trainer.device=cpu") for name in (GPUS, MEMORY))
        return
    names = ", ".join(sorted({gpu["name"] for gpu in found}))
    if len(found) < job.gpus:
        yield failed(
            GPUS,
            f"{len(found)} in {where}, and the job takes {job.gpus}",
            "set trainer.n_gpus_per_node and trainer.nnodes to what there is",
        )
        yield not_checked(MEMORY, "there are too few GPUs")
        return
    yield ok(GPUS, f"{len(found)} in {where}: {names}")
    busy = [gpu for gpu in found if gpu["free"] < FREE * gpu["total"]]
    if busy:
        free = min(gpu["free"] for gpu in busy) / GB
        yield failed(
            MEMORY,
            f"{len(busy)} of {len(found)} GPUs are in use; the fullest has {free:.0f} GB free",
            "see nvidia-smi, and end what holds them",
        )
        return
    yield ok(MEMORY, "free")


def _host(job: Job) -> Check:
    return not_checked(HOST, "no plan")


def _disk(job: Job) -> Check:
    folder = Path(job.at("trainer.default_local_dir")).expanduser()
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(there).free
    return ok(DISK, f"{free / GB:.0f} GB free at {there}")
