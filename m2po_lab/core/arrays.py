"""The two things the core needs on top of the array API: a namespace and float64 log-probs."""

from typing import Any, TypeAlias

from array_api_compat import array_namespace

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
