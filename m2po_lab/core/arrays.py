"""The two things the core needs on top of the array API: a namespace and float64 log-probs."""

from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, is_numpy_array, is_torch_array

Array: TypeAlias = Any
"""An array of numpy, torch or any other library that follows the array API standard."""


def namespace(*arrays: Array | None) -> Any:
    """Return the array-API namespace that the given arrays share; None entries are ignored."""
    return array_namespace(*(array for array in arrays if array is not None))


def float64(array: Array) -> Array:
    """Return the array in float64, whatever it came in (bfloat16, float16, float32, integers).

    Differences of log-probs and all sums are taken in float64: a mean over 1e9 tokens of squares
    near 1e-5 loses every digit in float32.
    """
    xp = namespace(array)
    return array if array.dtype == xp.float64 else xp.astype(array, xp.float64)


def row_positions(lengths: Array) -> tuple[Array, Array]:
    """Return for each token of a ragged layout its row and its position in that row.

    Args:
        lengths: (B,) integers, tokens a row; zeros are allowed.

    Returns:
        Two (N,) int64 arrays with N the sum of the lengths.
    """
    xp = namespace(lengths)
    lengths = xp.astype(lengths, xp.int64)
    row = xp.repeat(xp.arange(lengths.shape[0], device=lengths.device, dtype=xp.int64), lengths)
    ends = xp.cumulative_sum(lengths)
    starts = ends - lengths
    token = xp.arange(row.shape[0], device=lengths.device, dtype=xp.int64)
    return row, token - xp.take(starts, row)


def segment_sum(values: Array, lengths: Array, row: Array) -> Array:
    """Sum each row of a ragged layout, in memory proportional to its tokens.

    The array API has no segmented sum, so numpy and torch use their own (torch keeps gradients);
    any other library sums the rows one after the other.

    Args:
        values: (N,) per token.
        lengths: (B,) tokens a row.
        row: (N,) row of each token, ascending.

    Returns:
        (B,) sums in the dtype of the values, 0 for an empty row.
    """
    xp = namespace(values)
    total = xp.zeros(lengths.shape, dtype=values.dtype, device=values.device)
    if is_torch_array(values):
        return total.index_add(0, row, values)
    ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
    starts = ends - np.asarray(lengths, dtype=np.int64)
    if is_numpy_array(values):
        some = ends > starts
        if some.any():
            total[some] = np.add.reduceat(values, starts[some])
        return total
    for i in range(total.shape[0]):
        total[i] = xp.sum(values[int(starts[i]) : int(ends[i])])
    return total
