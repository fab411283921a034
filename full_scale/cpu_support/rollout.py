"""A rollout backend for verl without an accelerator: `rollout.name=hf`.

verl 0.9.1 asks for a replica, which launches servers and answers requests for tokens, and an
adapter in the trainer's process, which sends it the weights.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import ray
import torch
from verl.workers.rollout.base import _ROLLOUT_REGISTRY, BaseRollout
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry
from verl.workers.rollout.utils import ensure_async_iterator

from full_scale.cpu_support.server import HFServer

NAME = "hf"


def server_name(replica_rank: int) -> str:
    """Name of the server's actor in ray."""
    return f"hf_server_{replica_rank}"


class HFReplica(RolloutReplica):
    """One server, in a process of its own."""

    async def launch_servers(self) -> None:
        """Start the server and wait until its model is loaded."""
        server = ray.remote(HFServer).options(
            name=server_name(self.replica_rank), max_concurrency=self.max_concurrency, num_cpus=1
        )
        self.servers = [
            server.remote(
                self.model_config.path,
                self.config.seed + self.replica_rank,
                self.config.response_length,
            )
        ]
        await asyncio.gather(*[each.wake_up.remote() for each in self.servers])
        self._server_handle, self._server_address = self.servers[0], server_name(self.replica_rank)


class HFAdapter(BaseRollout):
    """In the trainer's process: sends weights to the server of the same number."""

    async def resume(self, tags: list[str]) -> None:
        """Nothing was released."""

    async def release(self) -> None:
        """Nothing to release."""

    async def update_weights(
        self,
        weights: Iterable[tuple[str, torch.Tensor]],
        wire_format: str = "named_tensors",
        global_steps: int | None = None,
        **unused: Any,
    ) -> None:
        """Gather all weights, which every rank takes part in, and send those of the first rank."""
        if wire_format != "named_tensors":
            raise ValueError(f"rollout.name=hf takes named tensors, not {wire_format}")
        whole = {
            name: value.detach().cpu().float().clone()
            async for name, value in ensure_async_iterator(weights)
        }
        rank = self.device_mesh["dp"].get_local_rank()
        await ray.get_actor(server_name(rank)).load.remote(whole, global_steps)


def register() -> None:
    """Make `rollout.name=hf` known to verl."""
    _ROLLOUT_REGISTRY[(NAME, "async")] = f"{__name__}.HFAdapter"
    RolloutReplicaRegistry.register(NAME, lambda: HFReplica)
