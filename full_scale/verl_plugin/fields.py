"""Fields of verl's mini-batch, nested or padded, as (B, T) tensors over the response, and back."""

from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

UNKNOWN_VERSION = -1


def padded(tensor: Tensor) -> Tensor:
    """(B, T) with zeros behind short rows, of a nested tensor or of one that is padded already."""
    return torch.nested.to_padded_tensor(tensor, 0) if tensor.is_nested else tensor


def like(values: Tensor, example: Tensor) -> Tensor:
    """Lay (B, T) values out as `example` is, on its device, so that verl splits both alike."""
    values = values.to(example.device)
    if not example.is_nested:
        return values
    offsets = example.offsets()
    place = torch.arange(values.shape[1], device=values.device)
    inside = place < offsets.diff()[:, None]
    return torch.nested.nested_tensor_from_jagged(values[inside], offsets)


def rows_of(data: TensorDict, name: str) -> list[Any] | None:
    """One Python value a row of a field without tensors, or None if it is not there."""
    if name not in data.keys():  # noqa: SIM118 - a TensorDict iterates over rows
        return None
    value = data[name]
    if isinstance(value, Tensor):
        return list(value.tolist())
    listed = value.tolist() if hasattr(value, "tolist") else value
    size = data.batch_size[0]
    return list(listed) if isinstance(listed, list | tuple) and len(listed) == size else None


def versions_of(data: TensorDict) -> tuple[list[int], list[int]]:
    """First and last weight version that each row was generated under; -1 where unknown.

    verl's agent loop puts them beside other things into `extra_fields`; the older trainers have
    a field for each.
    """
    size = data.batch_size[0]
    extra = rows_of(data, "extra_fields") or [None] * size
    ends = []
    for name in ("min_global_steps", "max_global_steps"):
        alone = rows_of(data, name) or [None] * size
        both = [
            row.get(name) if isinstance(row, dict) and row.get(name) is not None else own
            for row, own in zip(extra, alone, strict=True)
        ]
        ends.append([UNKNOWN_VERSION if value is None else int(value) for value in both])
    return ends[0], ends[1]
