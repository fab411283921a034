"""Two log-prob columns against each other: aligned, equal, on one scale?

All sums are over kept tokens of one ratio; d is its log-ratio, x its denominator's log-prob.
"""

from dataclasses import dataclass

import numpy as np

from m2po_lab.core.batch import RATIOS
from m2po_lab.integrity.additive import Additive, Bools, Floats, Ints
from m2po_lab.integrity.flat import Flat

SHIFTS = (-1, 0, 1)
FLOOR = -20.0
"""Log-probs below this count as this in correlations, so that one token cannot decide them."""
VOTING_TOKENS = 16
"""Rows with fewer pairs have no say in which shift fits."""
VOTE_BEST, VOTE_ZERO = 0.9, 0.5
"""A row votes for a shift if it correlates above the first there and below the second unshifted."""
MAGNITUDES = 2.0 ** np.arange(-14, 6)
"""Bin edges of |d|, half-open from below, octaves from 6e-5 to 32 nats."""
LEVELS = -np.array(
    [0, 0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 20.0]
)
"""Bin edges of the denominator's log-prob for the slope, from 0 down."""
STEPS = np.arange(-4.0, 4.0001, 0.04)
"""Bin edges of d for its median in each bin of `LEVELS`."""
CERTAIN, SURPRISED = float(np.log(0.5)), -2.0
"""A token of at least probability .5 that is scored more than 2 nats lower."""


@dataclass(frozen=True)
class Pair(Additive):
    """What one ratio's columns add up to.

    Args:
        shift: (3, 6) n, sum a, sum b, sum aa, sum bb, sum ab of numerator at t and denominator at
            t + s, for s in `SHIFTS`.
        votes: (4,) rows that fit best at each shift, and rows with enough tokens to vote.
        nonzero: tokens on which the two log-probs are not both exactly 0.
        equal: those of them on which they are the same to the last bit.
        histogram: (2, 2, len(MAGNITUDES) + 1) counts by lag (0 known to be lag 0; 1 the rest), by
            side (0 for d <= 0; 1 for d > 0), by magnitude; the first bin is below the first edge.
        squares: same shape, sum of d^2.
        levels: (len(LEVELS), len(STEPS) + 1) counts by denominator log-prob and d.
        certain: (2, 3) by lag as above: tokens with denominator probability >= .5, those of them
            scored more than 2 nats lower, rows with such a token.
        excess: (2, 2) by lag: tokens, sum of e^d - 1 with d capped at 20.
    """

    shift: Floats
    votes: Ints
    nonzero: int
    equal: int
    histogram: Ints
    squares: Floats
    levels: Ints
    certain: Ints
    excess: Floats


def measure(flat: Flat, ratio: str) -> Pair:
    """Add up one ratio of a batch."""
    top, bottom = (flat.logp[name] for name in RATIOS[ratio])
    index = np.flatnonzero(flat.keep)
    a, b, d = top[index], bottom[index], flat.log_ratio(ratio)[index]
    fresh = flat.lag[index] == 0
    stratum = np.where(fresh, 0, 1)
    both_zero = (a == 0.0) & (b == 0.0)
    shift, votes = _shifts(flat, top, bottom)
    histogram, squares = _histogram(d, stratum)
    return Pair(
        shift=shift,
        votes=votes,
        nonzero=int((~both_zero).sum()),
        equal=int(((a == b) & ~both_zero).sum()),
        histogram=histogram,
        squares=squares,
        levels=_levels(b, d),
        certain=_certain(b, d, stratum, flat.row[index]),
        excess=np.stack(
            [
                np.bincount(stratum, minlength=2).astype(np.float64),
                np.bincount(stratum, weights=np.expm1(np.minimum(d, 20.0)), minlength=2),
            ],
            axis=1,
        ),
    )


def _shifts(flat: Flat, top: Floats, bottom: Floats) -> tuple[Floats, Ints]:
    """Correlation sums at every shift, and the votes of the rows."""
    n = flat.keep.shape[0]
    a = np.where(flat.keep, np.maximum(top, FLOOR), 0.0)
    b = np.where(flat.keep, np.maximum(bottom, FLOOR), 0.0)
    sums, per_row = [], []
    for s in SHIFTS:
        here = slice(max(0, -s), n - max(0, s))
        there = slice(max(0, s), n - max(0, -s))
        pair = flat.keep[here] & flat.keep[there] & (flat.row[here] == flat.row[there])
        x, y = np.where(pair, a[here], 0.0), np.where(pair, b[there], 0.0)
        row = flat.row[here]
        terms = (pair, x, y, x * x, y * y, x * y)
        by_row = np.stack([_row_sums(row, t, flat.n_rows) for t in terms])
        sums.append(by_row.sum(axis=1))
        per_row.append(by_row)
    voting = np.min([by_row[0] for by_row in per_row], axis=0) >= VOTING_TOKENS
    r = np.stack([correlation(by_row) for by_row in per_row])[:, voting]
    best = np.argmax(np.where(np.isnan(r), -2.0, r), axis=0) if voting.any() else np.zeros(0, int)
    shifted = (np.nanmax(r, axis=0, initial=-2.0) > VOTE_BEST) & (r[1] < VOTE_ZERO)
    votes = np.array(
        [
            int((shifted & (best == 0)).sum()),
            int((best == 1).sum()),
            int((shifted & (best == 2)).sum()),
            int(voting.sum()),
        ]
    )
    return np.stack(sums), votes


def _row_sums(row: Ints, values: Floats | Bools, rows: int) -> Floats:
    return np.bincount(row, weights=values, minlength=rows).astype(np.float64, copy=False)


def correlation(sums: Floats) -> Floats:
    """Pearson's r of (n, sum a, sum b, sum aa, sum bb, sum ab); NaN where one side is constant."""
    n, a, b, aa, bb, ab = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = ab - a * b / n
        spread = (aa - a * a / n) * (bb - b * b / n)
        tiny = 1e-12 * aa * bb
        return np.asarray(
            np.where(spread > tiny, covariance / np.sqrt(np.maximum(spread, 0)), np.nan)
        )


def _histogram(d: Floats, stratum: Ints) -> tuple[Ints, Floats]:
    bins = len(MAGNITUDES) + 1
    cell = (stratum * 2 + (d > 0)) * bins + np.searchsorted(MAGNITUDES, np.abs(d), side="right")
    counts = np.bincount(cell, minlength=4 * bins).reshape(2, 2, bins)
    squares = np.bincount(cell, weights=d * d, minlength=4 * bins).reshape(2, 2, bins)
    return counts.astype(np.int64), squares.astype(np.float64)


def _levels(b: Floats, d: Floats) -> Ints:
    level = np.clip(np.searchsorted(-LEVELS, -b, side="right") - 1, 0, len(LEVELS) - 1)
    step = np.clip(np.floor((d - STEPS[0]) / (STEPS[1] - STEPS[0])) + 1, 0, len(STEPS)).astype(
        np.int64
    )
    width = len(STEPS) + 1
    return np.bincount(level * width + step, minlength=len(LEVELS) * width).reshape(-1, width)


def _certain(b: Floats, d: Floats, stratum: Ints, row: Ints) -> Ints:
    likely: Bools = b >= CERTAIN
    surprised = likely & (d < SURPRISED)
    return np.array(
        [
            [
                int((likely & (stratum == s)).sum()),
                int((surprised & (stratum == s)).sum()),
                int(np.unique(row[surprised & (stratum == s)]).size),
            ]
            for s in (0, 1)
        ]
    )
