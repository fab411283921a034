"""Sums over the data-parallel ranks, each of which holds its own rows of the mini-batch."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Ranks:
    """The data-parallel group of an engine.

    Ranks that hold the same rows (sequence or tensor parallel) are in different data-parallel
    groups, each of which sums to the same, so nothing is counted twice.

    Attributes:
        group: process group; None where there is but one process.
        device: where its collectives run.
    """

    group: Any
    device: Any

    @property
    def alone(self) -> bool:
        """Whether there is nothing to sum over."""
        return not dist.is_initialized() or dist.get_world_size(self.group) == 1

    def sum(self, values: Tensor) -> Tensor:
        """Sum a tensor over the ranks, in place where it lies on their device."""
        if self.alone:
            return values
        there = values.to(self.device)
        dist.all_reduce(there, op=dist.ReduceOp.SUM, group=self.group)
        return there

    def table(self, values: list[int]) -> Tensor:
        """Gather a few integers of each rank: (ranks, len(values)) int64, the same everywhere."""
        mine = torch.tensor(values, dtype=torch.int64, device=self.device)
        if self.alone:
            return mine[None].cpu()
        rows = [torch.empty_like(mine) for _ in range(dist.get_world_size(self.group))]
        dist.all_gather(rows, mine, group=self.group)
        return torch.stack(rows).cpu()

    def rows(self, values: Tensor) -> Tensor:
        """Gather (k, b, t) of each rank: (k, rows of all, widest t), zeros behind short rows.

        Ranks come one after the other, as in `MiniBatch.rows`.
        """
        if self.alone:
            return values
        sizes = self.table(list(values.shape[1:]))
        most, widest = sizes.amax(dim=0).tolist()
        mine = values.new_zeros(len(values), most, widest, device=self.device)
        mine[:, : values.shape[1], : values.shape[2]] = values
        parts = [torch.empty_like(mine) for _ in sizes]
        dist.all_gather(parts, mine, group=self.group)
        return torch.cat(
            [part[:, :rows] for part, (rows, _) in zip(parts, sizes.tolist(), strict=True)], dim=1
        )

    @property
    def index(self) -> int:
        """Number of this rank in the group."""
        return 0 if self.alone else dist.get_rank(self.group)
