"""Exact sums of squares, and the budget decision that does not depend on the order of anything.

A float64 sum depends on the order of its terms, so two splits of one mini-batch could disagree
about a token. Here every float is an integer number of the smallest subnormal, 2^-1074, and sums
are Python integers. The decision is the one of a float64 mean, fl(fl(sum) / n) <= budget, with each
fl one correct rounding: what `math.fsum(squares) / n <= budget` says.

A key is the bit pattern of a non-negative float64, as an integer. Keys order as their values do.
"""

from dataclasses import dataclass
from functools import cached_property

SCALE = 1074
"""Sums are counted in units of 2^-SCALE, the smallest positive float64."""
MANTISSA = 52
_UNIT = 1 << SCALE
_GUARD = 51


def multiple(key: int, count: int = 1, remainder: int = 0) -> int:
    """Return the exact sum of `count` floats with a common exponent, in units of 2^-1074.

    Args:
        key: their common leading bits, the lower ones zero.
        count: how many.
        remainder: sum of (own key - key) over them.
    """
    exponent = key >> MANTISSA
    mantissa = key & ((1 << MANTISSA) - 1)
    if exponent:
        mantissa += 1 << MANTISSA
        exponent -= 1
    return (count * mantissa + remainder) << exponent


def mean(total: int, n: int) -> float:
    """Return fl(fl(total) / n) of a sum in units of 2^-1074; NaN for n = 0, inf on overflow."""
    if n == 0:
        return float("nan")
    try:
        return (total / _UNIT) / n
    except OverflowError:
        return float("inf")


@dataclass(frozen=True)
class Budget:
    """A finite bound on a float64 mean of squares.

    The set of n with `fits` need not be an interval: three equal squares may round to a mean above
    each of them. `may_fit` is exact, holds for a prefix of the ascending squares, and is implied by
    `fits`; the difference is about the last two bits of the mean.
    """

    value: float

    @cached_property
    def _bound(self) -> int:
        numerator, denominator = self.value.as_integer_ratio()
        units = (numerator << SCALE) // denominator
        return units * ((1 << _GUARD) + 1) + (1 << _GUARD)

    def fits(self, total: int, n: int) -> bool:
        """Whether the float64 mean of n squares is at most the budget; nothing always fits."""
        return n == 0 or mean(total, n) <= self.value

    def may_fit(self, total: int, n: int) -> bool:
        """Whether total / n <= budget (1 + 2^-51) + 2^-1074, in exact arithmetic."""
        return (total << _GUARD) <= n * self._bound

    def most_ties(self, total: int, n: int, key: int, ties: int) -> int:
        """How many of `ties` squares with this key can join n squares that then may fit."""
        bound = self._bound
        excess = (multiple(key) << _GUARD) - bound
        room = n * bound - (total << _GUARD)
        return ties if excess <= 0 else max(0, min(ties, room // excess))
