"""Which bin a token falls into: log-ratio, position, behavior probability, quadrant."""

import math
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.signedinteger[Any]]
Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Array: TypeAlias = npt.NDArray[Any]

LOWEST_EXPONENT, EXPONENTS = -24, 40
"""|d| is binned from 2^-24 (6e-8) to 2^16; smaller and larger values fall into the end bins."""
FINE, COARSE = 7, 5
"""Mantissa bits of the bins over all tokens (a bin is .8 % wide) and of those a group (3 %)."""

QUADRANTS = ("A>0,r>1", "A>0,r<=1", "A<0,r<1", "A<0,r>=1", "A=0")
UNKNOWN_ADVANTAGE = len(QUADRANTS)
ACTIVE = (0, 2)
NONZERO = (0, 1, 2, 3)
"""Quadrant codes whose union is the trust-region tokens, and those with an advantage."""

PROBABILITY_EDGES = (0.0, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)


def magnitudes(mantissa_bits: int) -> int:
    """How many magnitude bins each sign has."""
    return EXPONENTS << mantissa_bits


def log_ratio_code(d: Floats, mantissa_bits: int = FINE) -> Ints:
    """Return the bin of each log-ratio, in the order of d: negative, exactly 0, positive.

    Codes run from 0 to 2 * magnitudes; the middle one holds exact zeros only. The bin of |d| is
    read off the float's bits: bins of one octave are equally wide and no logarithm is taken.
    """
    half = magnitudes(mantissa_bits)
    bits = np.abs(d).view(np.int64) >> (52 - mantissa_bits)
    size = np.clip(bits - ((1023 + LOWEST_EXPONENT) << mantissa_bits), 0, half - 1) + 1
    code: Ints = half + np.sign(d).astype(np.int64) * size
    return code


def coarser(code: Ints, fine: int = FINE, coarse: int = COARSE) -> Ints:
    """Return the code with fewer mantissa bits of a code with more."""
    half, drop = magnitudes(fine), fine - coarse
    size = np.arange(half) >> drop
    table = np.concatenate((-1 - size[::-1], [0], 1 + size)) + magnitudes(coarse)
    return table[code]


def representative(mantissa_bits: int) -> Floats:
    """Return |d| at the middle of each magnitude bin, after one entry 0 for exact zeros."""
    step = np.arange(magnitudes(mantissa_bits), dtype=np.int64)
    low = (step + ((1023 + LOWEST_EXPONENT) << mantissa_bits)) << (52 - mantissa_bits)
    high = (step + 1 + ((1023 + LOWEST_EXPONENT) << mantissa_bits)) << (52 - mantissa_bits)
    middle = (low.view(np.float64) + high.view(np.float64)) / 2
    return np.concatenate(([0.0], middle))


@cache
def lowest_values(mantissa_bits: int) -> Floats:
    """Return a lower bound of the log-ratios of each code, exact but for the outermost bins."""
    half = magnitudes(mantissa_bits)
    keys = np.arange(half + 1, dtype=np.int64) + ((1023 + LOWEST_EXPONENT) << mantissa_bits)
    edges = (keys << (52 - mantissa_bits)).view(np.float64)
    edges[0], edges[-1] = 0.0, np.inf
    return np.concatenate((-edges[:0:-1], [0.0], edges[:-1]))


def position_bin(position: Ints) -> Ints:
    """Return the doubling bin of a position: 0, 1, 2-3, 4-7, ... are 0, 1, 2, 3, ..."""
    return np.frexp(position.astype(np.float64))[1].astype(np.int64)


def position_range(index: int) -> tuple[int, int]:
    """Return the first and the last position of a doubling bin."""
    return (0, 0) if index == 0 else (1 << (index - 1), (1 << index) - 1)


def probability_bin(behavior_logp: Floats) -> Ints:
    """Return the bin among `PROBABILITY_EDGES` of exp(behavior_logp); -1 where it is NaN.

    A bin holds its lower edge; the last one also holds 1 and what rounding puts above it.
    """
    index = np.zeros(behavior_logp.shape, dtype=np.int8)
    for edge in PROBABILITY_EDGES[1:-1]:
        index += behavior_logp >= math.log(edge)
    return np.where(np.isnan(behavior_logp), -1, index.astype(np.int64))


def quadrant(d: Floats, advantage: Floats | None) -> Ints:
    """Return the code among `QUADRANTS` of each token, `UNKNOWN_ADVANTAGE` where A is not a number.

    r > 1 is d > 0: the sign of the log-ratio decides, so that tiny differences are not lost.
    """
    if advantage is None:
        return np.full(d.shape, UNKNOWN_ADVANTAGE, dtype=np.int64)
    positive = (advantage > 0) & (advantage < np.inf)
    negative = (advantage < 0) & (advantage > -np.inf)
    flags = (positive, negative, advantage == 0, d > 0, d < 0)
    index = np.zeros(d.shape, dtype=np.int8)
    for place, flag in enumerate(flags):
        index |= flag.view(np.int8) << np.int8(place)
    return _quadrants()[index]


@cache
def _quadrants() -> Ints:
    """Quadrant code of every combination of the flags of `quadrant`, which are bits."""
    codes = np.full(32, UNKNOWN_ADVANTAGE, dtype=np.int64)
    for index in range(32):
        positive, negative, zero, up, down = (bool(index >> place & 1) for place in range(5))
        if zero:
            codes[index] = 4
        elif positive:
            codes[index] = 0 if up else 1
        elif negative:
            codes[index] = 2 if down else 3
    return codes
