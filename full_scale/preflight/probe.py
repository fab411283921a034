"""What a worker of the job finds where it runs: the plugin, versions, its GPU.

`python -m full_scale.preflight.probe STRATEGY LOSS_MODE MODULE` prints it as one line of JSON.
"""

import importlib
import json
import platform
import sys
from typing import Any

FOUND = ("verl", "vllm", "torch", "transformers", "ray", "m2po-lab")
"""Distributions whose versions must be the same in every process."""


def probe(strategy: str, loss_mode: str, module: str) -> dict[str, Any]:
    """Load the plugin as a worker of verl does, and look at the GPUs.

    Args:
        strategy: `actor.strategy`.
        loss_mode: `actor.policy_loss.loss_mode`.
        module: `actor_rollout_ref.model.external_lib`.

    Returns:
        "host" and bytes of its "memory" that are free, "python", "versions", "gpus" with name and
        bytes each, and "problem": why the plugin would not be what trains, empty if it is.
    """
    import psutil

    from full_scale.preflight.versions import installed

    return {
        "host": platform.node(),
        "python": platform.python_version(),
        "versions": {name: installed(name) for name in FOUND},
        "gpus": _gpus(),
        "memory": psutil.virtual_memory().available,
        "problem": _problem(strategy, loss_mode, module),
    }


def _problem(strategy: str, loss_mode: str, module: str) -> str:
    try:
        importlib.import_module("verl")
        importlib.import_module(module)
        from verl.trainer.ppo.core_algos import get_policy_loss_fn
        from verl.workers.engine import EngineRegistry

        engine = EngineRegistry.get_engine_cls("language_model", strategy)
        loss = get_policy_loss_fn(loss_mode)
    except Exception as error:
        # Whatever is raised here is what the worker would end with.
        return " ".join(f"{type(error).__name__}: {error}".split())
    for name, made in (("engine", engine), ("loss", getattr(loss, "func", loss))):
        if not made.__module__.startswith("full_scale."):
            return f"the {name} would be {made.__module__}.{made.__qualname__}, not the plugin's"
    return ""


def _gpus() -> list[dict[str, Any]]:
    import torch

    gpus = []
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        free, total = torch.cuda.mem_get_info(index)
        gpus.append({"name": torch.cuda.get_device_name(index), "free": free, "total": total})
    return gpus


if __name__ == "__main__":
    sys.stdout.write(f"\n{json.dumps(probe(*sys.argv[1:4]))}\n")
