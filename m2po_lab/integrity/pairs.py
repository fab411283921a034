"""Two log-prob columns against each other: equal, on one scale, where is the mass of d^2?

All counts and sums are over kept tokens of one ratio. Tokens are split by lag into two strata: 0,
the version that sampled them is the trainer's (only engines differ); 1, any other or unknown lag.
"""

from dataclasses import dataclass

import numpy as np

from m2po_lab.core.batch import RATIOS
from m2po_lab.integrity.additive import Additive, Bools, Floats, Ints
from m2po_lab.integrity.faults import Examples, examples
from m2po_lab.integrity.kept import Kept

MAGNITUDES = 2.0 ** (np.arange(-24 * 4, 6 * 4) / 4)
"""Bin edges of |d|, quarter octaves from 6e-8 to 54 nats; bin 0 is below the first."""
LEVELS = -np.array(
    [0, 0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 20.0]
)
"""Bin edges of the denominator's log-prob, from 0 down; the last bin is open."""
STEPS = np.linspace(-4.0, 4.0, 201)
"""Bin edges of d for its quantiles in each bin of `LEVELS`, both ends open."""
CERTAIN, SURPRISED = float(np.log(0.5)), -2.0
"""A token of at least probability .5 that is scored more than 2 nats lower."""
TAIL = 0.5
"""Beyond this |d| a token is in a tail: its ratio is off by a factor of 1.6."""
PRODUCT = 8.0
"""A row whose d add up to more than this, either way, has a product ratio beyond any use (3000)."""
EQUAL_SHARE = 0.999
"""Share of bitwise equal tokens from which a column is a copy; float32 agrees by chance 1e-6."""
QUADRANTS = ("A>0,r>1", "A>0,r<=1", "A<0,r<1", "A<0,r>=1", "A=0")


@dataclass(frozen=True)
class Pair(Additive):
    """What one ratio's columns add up to.

    Args:
        n: (2,) kept tokens by stratum.
        excess: (2,) sum of e^d - 1 by stratum, d capped at 20.
        nonzero: tokens on which the two log-probs are not both exactly 0.
        equal: those of them on which they are the same to the last bit.
        histogram: (2, 2, len(MAGNITUDES) + 1) counts by stratum, side (0: d <= 0; 1: d > 0) and
            |d|.
        squares: same shape, sum of d^2.
        tail_rows: (2,) rows with a token of d < -TAIL, of d > TAIL.
        levels: (2, len(LEVELS), len(STEPS) + 1) counts by stratum, denominator log-prob and d.
        certain: (2, 3) by stratum: tokens of denominator probability >= .5; those scored more than
            2 nats lower; rows with one of those.
        surprised: where the first of those at lag 0 stand, with their behavior log-prob.
        quadrants: (5, 4) by `QUADRANTS`: tokens, sum d^2, tokens with |d| > TAIL, rows with one.
        products: (3,) rows, rows with sum d > PRODUCT, rows with sum d < -PRODUCT.
    """

    n: Ints
    excess: Floats
    nonzero: int
    equal: int
    histogram: Ints
    squares: Floats
    tail_rows: Ints
    levels: Ints
    certain: Ints
    surprised: Examples
    quadrants: Floats
    products: Ints


def measure(kept: Kept, ratio: str) -> Pair:
    """Add one ratio of a batch up."""
    a, b = (kept.logp[name] for name in RATIOS[ratio])
    d, stratum = kept.log_ratios[ratio], kept.stratum
    both_zero = (a == 0.0) & (b == 0.0)
    histogram, squares = _histogram(d, stratum)
    return Pair(
        n=np.bincount(stratum, minlength=2),
        excess=_sums(stratum, np.expm1(np.minimum(d, 20.0)), 2),
        nonzero=int(d.size - both_zero.sum()),
        equal=int((a == b).sum() - both_zero.sum()),
        histogram=histogram,
        squares=squares,
        tail_rows=np.array([_rows(kept.row, d < -TAIL), _rows(kept.row, d > TAIL)]),
        levels=_levels(b, d, stratum),
        certain=_certain(b, d, stratum, kept.row),
        surprised=_surprised(kept, RATIOS[ratio][1], b, d),
        quadrants=_quadrants(d, kept.advantage, kept.row),
        products=_products(kept, d),
    )


def _sums(cell: Ints, values: Floats | Bools, cells: int) -> Floats:
    return np.bincount(cell, weights=values, minlength=cells).astype(np.float64, copy=False)


def _rows(row: Ints, hit: Bools) -> int:
    return int(np.unique(row[hit]).size)


def _histogram(d: Floats, stratum: Ints) -> tuple[Ints, Floats]:
    bins = len(MAGNITUDES) + 1
    cell = (stratum * 2 + (d > 0)) * bins + _magnitude(d)
    counts = np.bincount(cell, minlength=4 * bins)
    return counts.reshape(2, 2, bins), _sums(cell, d * d, 4 * bins).reshape(2, 2, bins)


def _magnitude(d: Floats) -> Ints:
    """Bin of |d|; up to rounding at the edges np.searchsorted(MAGNITUDES, |d|, side="right")."""
    quarter = np.log2(np.maximum(np.abs(d), MAGNITUDES[0] / 2)) * 4 - 4 * np.log2(MAGNITUDES[0]) + 1
    return np.asarray(np.clip(np.floor(quarter), 0, len(MAGNITUDES)), dtype=np.int64)


def _levels(b: Floats, d: Floats, stratum: Ints) -> Ints:
    level = np.clip(np.searchsorted(-LEVELS, -b, side="right") - 1, 0, len(LEVELS) - 1)
    cell = (stratum * len(LEVELS) + level) * (len(STEPS) + 1)
    width = STEPS[1] - STEPS[0]
    cell += np.clip(np.floor((d - STEPS[0]) / width) + 1, 0, len(STEPS)).astype(np.int64)
    shape = (2, len(LEVELS), len(STEPS) + 1)
    return np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)


def _certain(b: Floats, d: Floats, stratum: Ints, row: Ints) -> Ints:
    likely = [(b >= CERTAIN) & (stratum == s) for s in (0, 1)]
    wrong = [hit & (d < SURPRISED) for hit in likely]
    return np.array([[a.sum(), w.sum(), _rows(row, w)] for a, w in zip(likely, wrong, strict=True)])


def _surprised(kept: Kept, column: str, b: Floats, d: Floats) -> Examples:
    hit = (kept.stratum == 0) & (b >= CERTAIN) & (d < SURPRISED)
    return examples(kept.flat, kept.index[hit], column, kept.flat.logp[column])


def _quadrants(d: Floats, advantage: Floats | None, row: Ints) -> Floats:
    """Tokens whose advantage is unknown are in no quadrant."""
    if advantage is None:
        return np.zeros((5, 4))
    up, down, even = advantage > 0, advantage < 0, advantage == 0
    tail = np.abs(d) > TAIL
    hits = (up & (d > 0), up & (d <= 0), down & (d < 0), down & (d >= 0), even)
    return np.array(
        [[h.sum(), (d[h] ** 2).sum(), (h & tail).sum(), _rows(row, h & tail)] for h in hits],
        dtype=np.float64,
    )


def _products(kept: Kept, d: Floats) -> Ints:
    total = kept.per_row(d)
    return np.array([(kept.counts > 0).sum(), (total > PRODUCT).sum(), (total < -PRODUCT).sum()])
