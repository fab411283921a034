"""The squares of a mini-batch as the decision about them needs them: their number, sum and order.

Two ways to the same integers. `Sorted` holds every key in one sorted array: for one process and few
tokens. `Tallied` looks at one digit of the keys at a time and asks the ranks to add up tables: for
any number of tokens and ranks, at a fixed price of some milliseconds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from m2po_lab.core.exact import MANTISSA, Budget, multiple
from m2po_lab.core.radix import LIMB, LOW, SHIFT, Bins, Boundary, Ints, first_masked, smallest
from m2po_lab.core.selection_parts import Part, check_finite, collect_from, tally
from m2po_lab.core.selection_scan import TRASH

FEW = 1 << 15
"""Most tokens for which sorting is quicker than the digits; bench/selection.py measures it."""
BEYOND = 0x7FF0_0000_0000_0001
"""Above every key: the infinity that a square may overflow to has the key below it."""


class Tallied:
    """Squares over all parts and ranks, by digits.

    Attributes:
        n: how many there are.
        total: their exact sum in units of 2^-1074.
    """

    def __init__(self, parts: list[Part], everywhere: Callable[[Any], Ints]) -> None:
        """Tally the first digit; raises ValueError on every rank for a non-finite log-ratio."""
        table = everywhere(tally(parts))
        check_finite(parts, int(table[TRASH, 0]))
        self._parts, self._everywhere = parts, everywhere
        self._bins = Bins(table[:TRASH], 0, SHIFT)
        self.n, self.total = self._bins.below(self._bins.size)

    def first_masked(self, budget: Budget) -> tuple[Boundary, int]:
        """The smallest square that is masked at least once, and how often it is kept."""

        def collect(low: int, high: int) -> Any:
            return collect_from(self._parts, low, high)

        return first_masked(self._bins, budget, collect, self._everywhere)

    def place(self, places: Ints, rank: int) -> int:
        """The `rank`-th smallest of the places, counted from 1, over all ranks."""
        return smallest(places, rank, self._everywhere)


class Sorted:
    """Squares of this process's parts, sorted; the same attributes, methods and answers."""

    def __init__(self, parts: list[Part]) -> None:
        """Sort; raises ValueError for a non-finite log-ratio."""
        check_finite(parts, sum(p.scan.non_finite(p.columns).size for p in parts))
        keys = list(collect_from(parts, 0, BEYOND))
        self._keys = np.sort(np.concatenate(keys)) if keys else np.zeros(0, dtype=np.int64)
        self.n, self.total = self._keys.size, exact_sum(self._keys)

    def first_masked(self, budget: Budget) -> tuple[Boundary, int]:
        """The smallest square that is masked at least once, and how often it is kept.

        Rounded running means lead to the largest number that may stay; from there the exact sum
        decides, downwards, as Algorithm 1 drops tokens.
        """
        keys = self._keys
        with np.errstate(over="ignore", under="ignore"):
            means = np.cumsum(keys.view(np.float64)) / np.arange(1, self.n + 1)
            near = np.flatnonzero(means <= budget.value * (1 + self.n * 2.0**-50) + 5e-324)
        stay = int(near[-1]) + 1 if near.size else 0
        total = exact_sum(keys[:stay])
        while not budget.fits(total, stay):
            stay -= 1
            total -= multiple(int(keys[stay]))
        key = int(keys[stay])
        below, end = (int(np.searchsorted(keys, key, side)) for side in ("left", "right"))
        total -= (stay - below) * multiple(key)
        return Boundary(key, end - below, below, total), stay - below

    def place(self, places: Ints, rank: int) -> int:
        """The `rank`-th smallest of the places, counted from 1."""
        return int(np.partition(places, rank - 1)[rank - 1])


def exact_sum(keys: Ints) -> int:
    """Exact sum of the floats with these keys, ascending, in units of 2^-1074."""
    exponent = keys >> MANTISSA
    starts = np.flatnonzero(np.diff(exponent, prepend=-1))
    if starts.size == 0:
        return 0
    rest = keys & ((1 << MANTISSA) - 1)
    low, high = (np.add.reduceat(limb, starts).tolist() for limb in (rest & LOW, rest >> LIMB))
    count = np.diff(starts, append=keys.size).tolist()
    groups = zip(exponent[starts].tolist(), count, low, high, strict=True)
    return sum(multiple(e << MANTISSA, n, (b << LIMB) + a) for e, n, a, b in groups)
