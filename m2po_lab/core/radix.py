"""Selection by digits: the boundary among keys spread over micro-batches and ranks, from sums only.

Keys are non-negative 63-bit integers. A level looks at some bits of the keys that share a given
prefix: per value of those bits the count and the exact sum of the lower bits. Tables add across
micro-batches and ranks, being integers in any order; each level fixes one more digit of the
boundary. Five levels of at most 786 kB and 4 x 98 kB settle it, whatever the number of keys.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from m2po_lab.core.exact import Budget, multiple

Ints = npt.NDArray[np.int64]
Reduce = Callable[[Ints], Ints]
Collect = Callable[[int, int], Iterable[Ints]]
"""(low, high) -> arrays of this rank's keys in [low, high)."""

KEY_BITS = 63
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
        below_total: exact sum of those as floats, in units of 2^-1074 (0 where not asked for).
    """

    key: int
    ties: int
    below: int
    below_total: int


Bin = tuple[int, int, int]
"""(least key with its leading digits, count, exact sum of the keys as floats in 2^-1074)."""
Choose = Callable[[list[Bin], int, int], int]
"""(ascending bins, number of keys below them, their sum) -> index of the bin to look into."""


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


def read_table(table: Ints, prefix: int, shift: int) -> list[Bin]:
    """Return a bin for each non-empty digit, ascending."""
    digits = np.flatnonzero(table[:, 0])
    bins = []
    for digit, (count, low, high) in zip(digits.tolist(), table[digits].tolist(), strict=True):
        key = prefix + (digit << shift)
        bins.append((key, count, multiple(key, count, (high << LIMB) + low)))
    return bins


def descend(
    first: list[Bin],
    collect: Collect,
    reduce: Reduce,
    choose: Choose,
) -> Boundary:
    """Follow `choose` from the first level down to one key.

    Args:
        first: bins of the first level, over all ranks, not empty.
        collect: keys of this rank.
        reduce: sum of a table over ranks.
        choose: which bin to look into, given everything below the bins' prefix; it must see the
            same tables on every rank, so that all take part in the same reductions.
    """
    below, below_total, bins = 0, 0, first
    keys: list[Ints] = []
    for level, (shift, _) in enumerate(LEVELS):
        index = choose(bins, below, below_total)
        below += sum(count for _, count, _ in bins[:index])
        below_total += sum(total for _, _, total in bins[:index])
        key, ties, _ = bins[index]
        if shift == 0:
            break
        if level == 0:
            keys = list(collect(key, key + (1 << shift)))
        else:
            keys = [k[(k >> shift) == (key >> shift)] for k in keys]
        next_shift, next_bits = LEVELS[level + 1]
        local = sum((table_of(k, next_shift, next_bits) for k in keys), _empty(next_bits))
        bins = read_table(reduce(local), key, next_shift)
    return Boundary(key, ties, below, below_total)


def first_masked(
    bins: list[Bin], budget: Budget, collect: Collect, reduce: Reduce
) -> tuple[Boundary, int]:
    """Return the smallest square that is masked at least once, and how often it is kept.

    The exact bound `may_fit` leads to the place; from there the float64 mean decides, downwards,
    as Algorithm 1 drops tokens. Nearly always the first look settles it.
    """

    def first_over(bins: list[Bin], n: int, total: int) -> int:
        for index, (_, count, square) in enumerate(bins):
            n, total = n + count, total + square
            if not budget.may_fit(total, n):
                return index
        return len(bins) - 1

    def last(bins: list[Bin], n: int, total: int) -> int:
        return len(bins) - 1

    def below(limit: int) -> Collect:
        return lambda low, high: collect(low, min(high, limit))

    boundary = descend(bins, below(1 << 63), reduce, first_over)
    while True:
        n, total, key = boundary.below, boundary.below_total, boundary.key
        square = multiple(key)
        for kept in range(budget.most_ties(total, n, key, boundary.ties), -1, -1):
            if budget.fits(total + kept * square, n + kept):
                return boundary, kept
        floor = key >> SHIFT << SHIFT
        lower = [each for each in bins if each[0] < floor]
        rest = n - sum(count for _, count, _ in lower)
        if rest:
            lower.append((floor, rest, total - sum(each[2] for each in lower)))
        boundary = descend(lower, below(key), reduce, last)


def smallest(keys: Ints, rank: int, reduce: Reduce) -> int:
    """Return the `rank`-th smallest key, counted from 1, over the keys of all ranks."""

    def choose(bins: list[Bin], below: int, _: int) -> int:
        for index, (_, count, _) in enumerate(bins):
            below += count
            if below >= rank:
                return index
        raise AssertionError("rank exceeds the number of keys")

    first = read_table(reduce(table_of(keys, SHIFT, BITS)), 0, SHIFT)
    within = lambda low, high: [keys[(keys >= low) & (keys < high)]]  # noqa: E731
    return descend(first, within, reduce, choose).key


def _empty(bits: int) -> Ints:
    return np.zeros((1 << bits, 3), dtype=np.int64)
