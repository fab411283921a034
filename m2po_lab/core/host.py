"""Arrays of any library as numpy, without a copy where the memory allows it.

Selection and histograms look at the bits of a float and count integers, which the array API does
not offer. They run on numpy (CPU torch tensors share their memory with it) and hand the result back
in the library and on the device of the input.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from m2po_lab.core.arrays import Array, namespace

Host = npt.NDArray[Any]
CHUNK = 1 << 18
"""Tokens a chunk: two megabytes of float64 stay in the cache."""


def to_host(array: Array) -> Host:
    """Return the values as a numpy array; gradients are left behind, bfloat16 tensors widen.

    A view of the same memory for numpy arrays and CPU tensors: do not write to it.
    """
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):
        tensor = array.detach().cpu()
        if str(tensor.dtype) == "torch.bfloat16":
            tensor = tensor.float()
        return np.asarray(tensor.numpy())
    return np.asarray(np.from_dlpack(array))


def to_library(values: Host, like: Array) -> Array:
    """Return numpy values as an array of the library and on the device of `like`."""
    if isinstance(like, np.ndarray):
        return values
    return namespace(like).asarray(values, device=like.device)


def spans(
    shape: tuple[int, ...], chunk: int | None = None
) -> Iterator[tuple[int, tuple[slice, ...]]]:
    """Cut a flat or padded layout into contiguous pieces of about CHUNK: (flat start, index)."""
    chunk = chunk or CHUNK
    if len(shape) == 1:
        for start in range(0, shape[0], chunk):
            yield start, (slice(start, start + chunk),)
        return
    rows, width = shape
    step = max(1, chunk // max(width, 1))
    for row in range(0, rows, step):
        for column in range(0, width, chunk):
            yield (
                row * width + column,
                (
                    slice(row, row + step),
                    slice(column, min(column + chunk, width)),
                ),
            )
