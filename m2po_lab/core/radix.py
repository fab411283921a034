"""Selection by digits: the boundary among keys spread over micro-batches and ranks, from sums only.

Keys are non-negative 63-bit integers. A level looks at some bits of the keys that share a given
prefix: per value of those bits the count and the exact sum of the lower bits. Tables add across
micro-batches and ranks, being integers in any order; each level fixes one more digit of the
boundary. A table of 786 kB and four of 98 kB settle it, whatever the number of keys.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from m2po_lab.core.exact import MANTISSA, Budget, multiple

Ints: TypeAlias = npt.NDArray[np.int64]
Reduce: TypeAlias = Callable[[Any], Ints]
Collect: TypeAlias = Callable[[int, int], Iterable[Ints]]
"""(low, high) -> arrays of this rank's keys in [low, high)."""

LEVELS = ((48, 15), (36, 12), (24, 12), (12, 12), (0, 12))
"""(shift, bits) of each digit: the first holds the exponent and four bits of the mantissa."""
SHIFT, BITS = LEVELS[0]
LIMB = 24
"""Sums of lower bits are kept in two limbs, so that 2^39 keys do not overflow an int64."""
LOW = (1 << LIMB) - 1


@dataclass(frozen=True)
class Boundary:
    """A key among many.

    Attributes:
        key: its value.
        ties: how many keys equal it.
        below: how many are smaller.
        below_total: exact sum of those as floats, in units of 2^-1074.
    """

    key: int
    ties: int
    below: int
    below_total: int


class Bins:
    """The keys that share a prefix, by their next digit; only digits that occur have a bin.

    Attributes:
        shift: bits below the digit.
        size: number of bins, ascending.
        count: keys in each.
    """

    def __init__(self, table: Ints, prefix: int, shift: int) -> None:
        self._prefix, self.shift = prefix, shift
        self._digits = np.flatnonzero(table[:, 0])
        self.size = self._digits.shape[0]
        # Bins with a common exponent form a group: in it a float is linear in its key.
        width = min(1 << MANTISSA - shift, table.shape[0])
        group, digit = self._digits // width, self._digits % width
        count, low, high = table[self._digits].T
        self.count = count
        self._running = np.zeros((4, self.size + 1), dtype=np.int64)
        np.cumsum(np.stack([count, count * digit, low, high]), axis=1, out=self._running[:, 1:])
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        self._starts = starts.tolist()
        self._keys = (prefix + (group[starts] * width << shift)).tolist()
        self._totals = [0]
        for place, end in enumerate([*self._starts[1:], self.size][: len(self._starts)]):
            self._totals.append(self._totals[-1] + self._inside(place, end))

    def _inside(self, place: int, end: int) -> int:
        """Exact sum of the bins of one group before `end`."""
        start = self._starts[place]
        count, digits, low, high = (self._running[:, end] - self._running[:, start]).tolist()
        remainder = (digits << self.shift) + (high << LIMB) + low
        return multiple(self._keys[place], count, remainder)

    def below(self, index: int) -> tuple[int, int]:
        """How many keys the first `index` bins hold, and their exact sum in 2^-1074."""
        if index == 0:
            return 0, 0
        place = bisect_right(self._starts, index - 1) - 1
        return int(self._running[0, index]), self._totals[place] + self._inside(place, index)

    def of_rank(self, rank: int) -> int:
        """Index of the bin that holds the rank-th smallest key, counted from 1."""
        return int(np.searchsorted(self._running[0, 1:], rank))

    def holding(self, key: int) -> int:
        """Index of the bin that holds a key."""
        return int(np.searchsorted(self._digits, (key - self._prefix) >> self.shift))

    def key(self, index: int) -> int:
        """Least key that a bin may hold."""
        return self._prefix + (int(self._digits[index]) << self.shift)


Choose: TypeAlias = Callable[[Bins, int, int], int]
"""(bins, number of keys below all of them, their sum) -> index of the bin to look into."""


def table_of(keys: Ints, shift: int, bits: int) -> Ints:
    """Return (2^bits, 3) per digit: count, and per limb the sum of the bits below shift."""
    size = 1 << bits
    digit = (keys >> shift) & (size - 1)
    rest = keys & ((1 << shift) - 1)
    table = np.empty((size, 3), dtype=np.int64)
    table[:, 0] = np.bincount(digit, minlength=size)
    # Limbs are below 2^24: their float64 sums are exact up to 2^29 keys at a time.
    table[:, 1] = np.bincount(digit, weights=rest & LOW, minlength=size)
    table[:, 2] = np.bincount(digit, weights=rest >> LIMB, minlength=size)
    return table


def descend(first: Bins, collect: Collect, reduce: Reduce, choose: Choose) -> Boundary:
    """Follow `choose` from the first level down to one key.

    Args:
        first: the first level, over all ranks, with a key in it.
        collect: keys of this rank.
        reduce: sum of a table over ranks.
        choose: which bin, holding a key, to look into. It sees the same bins on every rank, so that
            all take part in the same reductions.
    """
    bins, below, total = first, 0, 0
    keys: list[Ints] = []
    for shift, bits in (*LEVELS[1:], (-1, 0)):
        index = choose(bins, below, total)
        n, square = bins.below(index)
        below, total, key = below + n, total + square, bins.key(index)
        if shift < 0:
            break
        if bins is first:
            keys = list(collect(key, key + (1 << bins.shift)))
        else:
            keys = [k[(k >> bins.shift) == (key >> bins.shift)] for k in keys]
        local = sum((table_of(k, shift, bits) for k in keys), np.zeros((1 << bits, 3), np.int64))
        bins = Bins(reduce(local), key, shift)
    return Boundary(key, int(bins.count[index]), below, total)


def first_masked(
    bins: Bins, budget: Budget, collect: Collect, reduce: Reduce
) -> tuple[Boundary, int]:
    """Return the smallest square that is masked at least once, and how often it is kept.

    The exact bound `may_fit` leads to the place; from there the float64 mean decides, downwards,
    as Algorithm 1 drops tokens. Nearly always the first look settles it.

    Args:
        bins: first level of the squares' keys, which do not fit the budget together.
        budget: bound on their mean.
        collect: keys of this rank.
        reduce: sum of a table over ranks.
    """

    def first_over(level: Bins, n: int, total: int) -> int:
        def over(index: int) -> bool:
            more, square = level.below(index + 1)
            return not budget.may_fit(total + square, n + more)

        index = bisect_left(range(level.size), True, key=over)
        return min(index, level.size - 1)

    boundary = descend(bins, collect, reduce, first_over)
    while True:
        n, total, key = boundary.below, boundary.below_total, boundary.key
        square = multiple(key)
        for kept in range(budget.most_ties(total, n, key, boundary.ties), -1, -1):
            if budget.fits(total + kept * square, n + kept):
                return boundary, kept
        boundary = _next_smaller(bins, boundary, collect, reduce)


def _next_smaller(bins: Bins, boundary: Boundary, collect: Collect, reduce: Reduce) -> Boundary:
    """Return the largest key below a boundary that is not the smallest."""
    limit, own = boundary.key, bins.holding(boundary.key)
    shared = boundary.below > bins.below(own)[0]

    def last(level: Bins, n: int, total: int) -> int:
        if level is bins:
            return own if shared else own - 1
        return level.size - 1

    return descend(bins, lambda low, high: collect(low, min(high, limit)), reduce, last)


def smallest(keys: Ints, rank: int, reduce: Reduce) -> int:
    """Return the `rank`-th smallest key, counted from 1, over the keys of all ranks."""

    def at_rank(level: Bins, n: int, total: int) -> int:
        return level.of_rank(rank - n)

    first = Bins(reduce(table_of(keys, SHIFT, BITS)), 0, SHIFT)
    return descend(
        first, lambda low, high: [keys[(keys >= low) & (keys < high)]], reduce, at_rank
    ).key
