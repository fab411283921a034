"""Selections and quantiles among the valid tokens of a batch, the same on every array library.

Sorted values are read by position with `where` and sums, which the array API has everywhere, and
ties go to the earliest token in canonical order (row, position), so that a mask depends neither on
the library nor on the layout.
"""

import math

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Tokens


def count(tokens: Tokens, mask: Array) -> Array:
    """How many, 0-d int64."""
    return tokens.xp.sum(tokens.xp.astype(mask, tokens.xp.int64))


def masked_mean(tokens: Tokens, values: Array, mask: Array) -> Array:
    """Mean over the mask, 0-d; 0 where it is empty."""
    xp = tokens.xp
    n = xp.astype(count(tokens, mask), xp.float64)
    total = xp.sum(xp.where(mask, values, tokens.zero))
    return total / xp.where(n > 0, n, xp.ones_like(n))


def top(tokens: Tokens, values: Array, eligible: Array, k: Array) -> Array:
    """Boolean mask of the k largest eligible values, all of them if there are fewer.

    Args:
        tokens: gives the namespace.
        values: finite float64, the batch's shape.
        eligible: boolean, same shape.
        k: 0-d int64, at least 0.
    """
    xp = tokens.xp
    ranked = xp.where(eligible, values, xp.full_like(values, -math.inf))
    descending = xp.sort(xp.reshape(ranked, (-1,)), descending=True)
    place = xp.arange(descending.shape[0], dtype=xp.int64, device=descending.device)
    last = xp.sum(xp.where(place == k - 1, descending, tokens.zero))
    above, equal = eligible & (ranked > last), eligible & (ranked == last)
    room = k - count(tokens, above)
    order = xp.cumulative_sum(xp.astype(xp.reshape(equal, (-1,)), xp.int64))
    return (above | (equal & (xp.reshape(order, equal.shape) <= room))) & (k > 0)


def quantile(tokens: Tokens, values: Array, q: float) -> Array:
    """q-quantile of the valid values of the batch, 0-d, interpolated linearly; 0 for none."""
    xp = tokens.xp
    flat = xp.reshape(xp.where(tokens.valid, values, xp.full_like(values, math.inf)), (1, -1))
    return xp.sum(_row_quantile(tokens, flat, xp.reshape(count(tokens, tokens.valid), (1,)), q))


def row_quantile(tokens: Tokens, values: Array, q: float) -> Array:
    """q-quantile of the valid values of each row, (B,), interpolated linearly; 0 for none."""
    xp = tokens.xp
    masked = xp.where(tokens.valid, values, xp.full_like(values, math.inf))
    return _row_quantile(
        tokens, tokens.batch.to_padded(masked, fill=math.inf), tokens.row_counts, q
    )


def _row_quantile(tokens: Tokens, padded: Array, counts: Array, q: float) -> Array:
    """Quantile of the first `counts` ascending values of each row."""
    xp = tokens.xp
    ascending = xp.sort(padded, axis=1)
    place = xp.arange(padded.shape[1], dtype=xp.float64, device=padded.device)[None, :]
    at = (xp.astype(counts, xp.float64) - 1)[:, None] * q
    low = xp.floor(at)
    first = xp.sum(xp.where(place == low, ascending, tokens.zero), axis=1)
    second = xp.sum(xp.where(place == xp.ceil(at), ascending, tokens.zero), axis=1)
    value = first + (second - first) * (at - low)[:, 0]
    return xp.where(counts > 0, value, xp.zeros_like(value))


def random_keys(tokens: Tokens, seed: int) -> Array:
    """A pseudo-random number in [0, 2^32) for every token, a function of (seed, row, position).

    Integer hashing instead of a generator of the library: numpy and torch, padded and ragged give
    the same keys, and torch.compile can trace it.
    """
    xp = tokens.xp
    row, position = tokens.batch.row_and_position
    start = (int(seed) * 0x9E3779B1 + 0x7F4A7C15) % 2**32
    mixed = _scramble(tokens, _scramble(tokens, row + start) + position)
    return xp.astype(mixed, xp.float64)


def _scramble(tokens: Tokens, value: Array) -> Array:
    """Mix the lower 32 bits of a non-negative int64 array."""
    xp = tokens.xp
    shift, low = xp.full_like(value, 16), xp.full_like(value, 2**32 - 1)
    value = xp.bitwise_and(value, low)
    for _ in range(2):
        value = xp.bitwise_xor(value, xp.bitwise_right_shift(value, shift))
        value = xp.bitwise_and(value * 0x45D9F3B, low)
    return xp.bitwise_xor(value, xp.bitwise_right_shift(value, shift))
