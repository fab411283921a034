"""Where the job will run: a fresh process here, or every GPU of the ray cluster that is up."""

import json
import subprocess
import sys
from collections import Counter
from typing import Any

from full_scale.overrides import ACTOR, LOSS
from full_scale.preflight.check import Check, ProblemError, failed, ok
from full_scale.preflight.job import Job

NAME = "workers"
SECONDS = 300.0
"""A fresh process imports torch, verl and vLLM; on a cold file system that takes minutes."""
PLACING = 30.0
"""Seconds for ray to find free GPUs for the whole job."""
RAY = "ray start --head on the first node, ray start --address=HOST:6379 on the others"


def ask_workers(job: Job) -> tuple[list[dict[str, Any]], str]:
    """What each worker finds, and where they were asked.

    Returns:
        What `probe` returns, of a process here if no ray cluster is up, else of one on each GPU.

    Raises:
        ProblemError: none could be asked, or the cluster cannot hold the job.
    """
    arguments = (
        job.at(f"{ACTOR}.strategy"),
        job.at(f"{LOSS}.loss_mode"),
        job.at("actor_rollout_ref.model.external_lib") or "full_scale",
    )
    if (address := _cluster()) is not None:
        return _on_cluster(job, arguments, address), f"the ray cluster at {address}"
    if job.at("trainer.nnodes") > 1:
        raise ProblemError(f"{job.at('trainer.nnodes')} nodes, and no ray cluster is up", RAY)
    return [_in_process(arguments)], "a fresh process here"


def check_workers(found: list[dict[str, Any]], where: str) -> Check:
    """Whether the plugin is what trains in every worker, with the same versions."""
    count = f"{len(found)} worker{'s' if len(found) > 1 else ''} in {where}"
    problems = Counter((each["problem"], each["host"]) for each in found if each["problem"])
    if problems:
        (problem, host), _ = problems.most_common(1)[0]
        return failed(
            NAME,
            f"{sum(problems.values())} of {count} would train without the plugin; "
            f"{host}: {problem}",
            'pip install -e ".[full-scale]" on every node, set '
            "actor_rollout_ref.model.external_lib=full_scale.verl_plugin and leave "
            "VERL_ENGINE_VENDOR unset",
        )
    differing = _differing(found)
    if differing:
        return failed(NAME, f"{count} have different versions of {differing}", "install the same")
    return ok(NAME, f"{count} load the plugin")


def _differing(found: list[dict[str, Any]]) -> str:
    names = found[0]["versions"]
    kinds = {name: {each["versions"][name] for each in found} for name in names}
    return ", ".join(name for name, versions in kinds.items() if len(versions) > 1)


def _in_process(arguments: tuple[str, ...]) -> dict[str, Any]:
    command = [sys.executable, "-m", "full_scale.preflight.probe", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        found = f"a fresh process did not load the plugin within {SECONDS:g} s"
        raise ProblemError(found, "see what holds up: " + " ".join(command[1:])) from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ProblemError(f"a fresh process ended with {done.returncode}: {last}", "see above")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def _cluster() -> str | None:
    """Address of the ray cluster that verl's `ray.init()` would join, None if it starts one."""
    # Only this function of ray knows the same places as `ray.init()`, and joins nothing.
    from ray._private.services import canonicalize_bootstrap_address

    address: str | None = canonicalize_bootstrap_address(None)
    return address


def _on_cluster(job: Job, arguments: tuple[str, ...], address: str) -> list[dict[str, Any]]:
    """Ask one process on each GPU, placed as verl will place its workers."""
    import ray
    from ray.util.placement_group import placement_group, remove_placement_group

    per_node = job.at("trainer.n_gpus_per_node")
    ray.init(address, log_to_driver=False, logging_level="ERROR")
    groups = []
    try:
        for _ in range(job.at("trainer.nnodes")):
            bundles = [{"CPU": 1, "GPU": 1}] * per_node
            groups.append(placement_group(bundles, strategy="STRICT_PACK"))
        ready, _ = ray.wait(
            [each.ready() for each in groups], num_returns=len(groups), timeout=PLACING
        )
        if len(ready) < len(groups):
            have = [node["Resources"].get("GPU", 0) for node in ray.nodes() if node["Alive"]]
            raise ProblemError(
                f"the cluster has no {len(groups)} x {per_node} free GPUs; its nodes have "
                f"{', '.join(f'{n:g}' for n in have)}",
                f"wait for other jobs to end, or add nodes: {RAY}",
            )
        return _on_gpus(groups, per_node, arguments)
    finally:
        for group in groups:
            remove_placement_group(group)
        ray.shutdown()


def _on_gpus(groups: list[Any], per_node: int, arguments: tuple[str, ...]) -> list[dict[str, Any]]:
    import ray
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    from full_scale.preflight.probe import probe

    task = ray.remote(num_cpus=1, num_gpus=1, max_retries=0)(probe)
    asked = [
        task.options(
            scheduling_strategy=PlacementGroupSchedulingStrategy(
                placement_group=group, placement_group_bundle_index=index
            )
        ).remote(*arguments)
        for group in groups
        for index in range(per_node)
    ]
    try:
        return list(ray.get(asked, timeout=SECONDS))
    except ray.exceptions.RayError as error:
        last = str(error).strip().splitlines()[-1]
        remedy = "pip install -e . on every node, or keep the checkout on a shared file system"
        raise ProblemError(f"a worker of the cluster failed: {last}", remedy) from error
