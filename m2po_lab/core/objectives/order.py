"""Selections and quantiles among the valid tokens of a batch, the same on every array library.

Sorted values are read by position with `where` and sums, which the array API has everywhere, and
ties go to the earliest token in canonical order (row, position), so that a mask depends neither on
the library nor on the layout.
"""

import math

from m2po_lab.core.arrays import Array, row_positions
from m2po_lab.core.objectives.base import Tokens, detach


def positions(tokens: Tokens) -> Array:
    """Position of every token in its row, int64, without the cache, whose lock no graph can hold.

    The batch's own `row_and_position` is the same numbers.
    """
    xp, batch = tokens.xp, tokens.batch
    if batch.lengths is not None:
        return row_positions(batch.lengths)[1]
    place = xp.arange(batch.shape[1], dtype=xp.int64, device=tokens.valid.device)
    return xp.broadcast_to(place[None, :], batch.shape)


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
    k = xp.minimum(k, count(tokens, eligible))
    last = xp.sum(xp.where(place == k - 1, descending, tokens.zero))
    above, equal = eligible & (ranked > last), eligible & (ranked == last)
    room = k - count(tokens, above)
    order = xp.cumulative_sum(xp.astype(xp.reshape(equal, (-1,)), xp.int64))
    return (above | (equal & (xp.reshape(order, equal.shape) <= room))) & (k > 0)


def quantile(tokens: Tokens, values: Array, among: Array, q: float) -> Array:
    """q-quantile of the values on a mask, 0-d, interpolated linearly; 0 for none."""
    xp = tokens.xp
    flat = xp.reshape(xp.where(among, values, xp.full_like(values, math.inf)), (1, -1))
    return xp.sum(_row_quantile(tokens, flat, xp.reshape(count(tokens, among), (1,)), q))


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
    low, some = xp.floor(at), (counts > 0)[:, None]
    first = xp.sum(xp.where(some & (place == low), ascending, tokens.zero), axis=1)
    second = xp.sum(xp.where(some & (place == xp.ceil(at)), ascending, tokens.zero), axis=1)
    value = first + (second - first) * (at - low)[:, 0]
    return xp.where(counts > 0, value, xp.zeros_like(value))


def random_keys(tokens: Tokens, seed: int) -> Array:
    """A pseudo-random number in [0, 2^32) for every token, a hash of (seed, position, l, mu).

    A hash of what the token is, not a draw from the library's generator: numpy and torch, padded
    and ragged, any order of the rows and any split of them give the same keys, and torch.compile
    can trace it. Tokens that agree in all four are told apart by their canonical order.
    """
    position = positions(tokens)
    start = (int(seed) * 0x9E3779B1 + 0x7F4A7C15) % 2**32
    mixed = _scramble(tokens, position + start)
    for column in (tokens.current, tokens.behavior):
        mixed = _scramble(tokens, mixed + _whole(tokens, detach(column)))
    return tokens.xp.astype(mixed, tokens.xp.float64)


def _whole(tokens: Tokens, values: Array) -> Array:
    """The values in steps of 2^-20, as non-negative int64 below 2^41."""
    xp = tokens.xp
    steps = xp.clip(xp.floor(values * 2.0**20), -(2.0**40), 2.0**40 - 1)
    return xp.astype(steps + 2.0**40, xp.int64)


def _scramble(tokens: Tokens, value: Array) -> Array:
    """Mix a non-negative int64 array into 32 bits."""
    xp = tokens.xp
    low = xp.full_like(value, 2**32 - 1)
    value = xp.bitwise_and(xp.bitwise_xor(value, _halved(tokens, value, 32)), low)
    for _ in range(2):
        value = xp.bitwise_xor(value, _halved(tokens, value, 16))
        value = xp.bitwise_and(value * 0x45D9F3B, low)
    return xp.bitwise_xor(value, _halved(tokens, value, 16))


def _halved(tokens: Tokens, value: Array, times: int) -> Array:
    """Value shifted right."""
    return tokens.xp.bitwise_right_shift(value, tokens.xp.full_like(value, times))
