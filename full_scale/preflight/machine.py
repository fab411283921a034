"""Workers, GPUs, memory and disk, against what the plan says the job needs."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from full_scale.plan.assumptions import Assumptions
from full_scale.plan.memory import checkpoint_disk_bytes, memory, offloaded_bytes
from full_scale.plan.queue import queue
from full_scale.preflight.check import Check, ProblemError, failed, not_checked, ok
from full_scale.preflight.job import Job
from full_scale.preflight.shape import planned
from full_scale.preflight.workers import NAME as WORKERS
from full_scale.preflight.workers import ask_workers, check_workers
from full_scale.recipes import Recipe

GPUS, MEMORY, HOST, DISK = "GPUs", "GPU memory", "host memory", "disk"
NAMES = (WORKERS, GPUS, MEMORY, HOST, DISK)
GB = 1e9
FREE = 0.9
"""Share of a GPU's memory that must be free before the job starts."""


def check_machine(job: Job) -> Iterator[Check]:
    """Ask the workers, and compare what they have with what the job takes."""
    recipe = planned(job)
    try:
        workers, where = ask_workers(job)
    except ProblemError as error:
        yield failed(WORKERS, error.found, error.remedy)
        yield from (not_checked(name, "no worker could be asked") for name in (GPUS, MEMORY, HOST))
    else:
        yield check_workers(workers, where)
        yield from check_gpus(job, recipe, [gpu for each in workers for gpu in each["gpus"]], where)
        yield check_host(job, recipe, {each["host"]: each["memory"] for each in workers})
    yield check_disk(job, recipe)


def check_gpus(
    job: Job, recipe: Recipe, found: list[dict[str, Any]], where: str
) -> Iterator[Check]:
    """Whether there are enough GPUs, free, and each large enough for both phases of a step."""
    if job.on_cpu:
        yield from (not_checked(name, "trainer.device=cpu") for name in (GPUS, MEMORY))
        return
    if len(found) < job.gpus:
        yield failed(
            GPUS,
            f"{len(found)} in {where}, and the job takes {job.gpus}",
            "set trainer.n_gpus_per_node and trainer.nnodes to what there is",
        )
        yield not_checked(MEMORY, "there are too few GPUs")
        return
    yield ok(GPUS, f"{len(found)} in {where}: {', '.join(sorted({gpu['name'] for gpu in found}))}")
    busy = [gpu for gpu in found if gpu["free"] < FREE * gpu["total"]]
    if busy:
        free = min(gpu["free"] for gpu in busy) / GB
        yield failed(
            MEMORY,
            f"{len(busy)} of {len(found)} GPUs are in use; the fullest has {free:.0f} GB free",
            "see nvidia-smi, and end what holds them",
        )
        return
    smallest = min(gpu["total"] for gpu in found) / GB
    needed = memory(recipe, replace(Assumptions(), gpu_gb=smallest))
    text = (
        f"{smallest:.0f} GB each; the plan takes {needed.sampling_peak / GB:.0f} to sample and "
        f"{needed.training_peak / GB:.0f} to train"
    )
    if needed.fits:
        yield ok(MEMORY, text)
    else:
        yield failed(
            MEMORY,
            text,
            "lower actor_rollout_ref.actor.ppo_max_token_len_per_gpu or "
            "actor_rollout_ref.rollout.gpu_memory_utilization, or take more GPUs",
        )


def check_host(job: Job, recipe: Recipe, available: Mapping[str, float]) -> Check:
    """Whether each node can hold its share of the stale queue and of what is offloaded."""
    waiting = _queue_bytes(job, recipe)
    needed = (waiting + offloaded_bytes(recipe)) / job.at("trainer.nnodes")
    host, least = min(available.items(), key=lambda each: each[1])
    text = (
        f"{least / GB:.0f} GB free on {host}; {needed / GB:.1f} a node for the optimizer and a "
        f"queue of {waiting / GB:.1f}"
    )
    if needed <= least:
        return ok(HOST, text)
    remedy = "a node with more memory, more nodes, or a smaller staleness"
    return failed(HOST, text, remedy)


def check_disk(job: Job, recipe: Recipe) -> Check:
    """Whether the checkpoints to come fit, each with its queue."""
    folder = Path(job.at("trainer.default_local_dir")).expanduser()
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(there).free
    kept = _kept(job)
    if not kept:
        return ok(DISK, f"{free / GB:.0f} GB free at {there}; no checkpoints are kept")
    each = checkpoint_disk_bytes(recipe.shape) + _queue_bytes(job, recipe)
    missing = max(kept - len(list(folder.glob("global_step_*/actor"))), 1) * each
    text = f"{free / GB:.0f} GB free at {there}; {kept} checkpoints of {each / GB:.1f} GB"
    if missing <= free:
        return ok(DISK, text)
    return failed(DISK, text, "--out on a larger disk, or trainer.max_actor_ckpt_to_keep=1")


def _kept(job: Job) -> int:
    """Checkpoints that lie on the disk at the end."""
    trainer = job.config.trainer
    if trainer.save_freq <= 0:
        return 0
    saved = -(-(trainer.total_training_steps or trainer.save_freq) // trainer.save_freq)
    return int(min(saved, trainer.max_actor_ckpt_to_keep or saved))


def _queue_bytes(job: Job, recipe: Recipe) -> float:
    """What waits in the queue; a checkpoint holds as much."""
    if job.at("trainer.v1.trainer_mode") == "sync":
        return 0.0
    assumed = Assumptions()
    return queue(recipe, assumed.prompt_mean, assumed.lengths_of(recipe)).bytes
