"""Off by one: do two log-prob columns agree better when one is moved by a token?"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from m2po_lab.core.batch import RATIOS
from m2po_lab.integrity.additive import Additive, Bools, Floats, Ints
from m2po_lab.integrity.kept import Kept

SHIFTS = (-1, 0, 1)
FLOOR = -20.0
"""Log-probs below this count as this in correlations, so that one token cannot decide them."""
VOTING_TOKENS = 16
"""Rows with fewer pairs have no say in which shift fits."""
VOTE_BEST, VOTE_ZERO = 0.9, 0.5
"""A row votes for a shift if it correlates above the first there and below the second unshifted."""


@dataclass(frozen=True)
class Shift(Additive):
    """Correlation sums of one ratio's columns.

    Args:
        sums: (3, 6) n, sum a, sum b, sum aa, sum bb, sum ab of the numerator at t and the
            denominator at t + s, for s in `SHIFTS`, both kept and in the same row.
        votes: (4,) rows that fit best at each shift, and rows with enough tokens to vote.
    """

    sums: Floats
    votes: Ints

    @property
    def correlations(self) -> tuple[float, float, float]:
        """Pearson's r at each of `SHIFTS`; NaN where it does not exist."""
        low, zero, high = (float(correlation(sums)) for sums in self.sums)
        return low, zero, high


@dataclass(frozen=True)
class Limits:
    """When columns count as shifted.

    Args:
        correlation: the best correlation away from 0 must reach this,
        margin: and exceed the unshifted one by this;
        pairs: from at least so many token pairs.
        row_share: or this share of the voting rows, and
        rows: at least so many, fit a shift each by itself.
    """

    correlation: float = 0.5
    margin: float = 0.2
    pairs: float = 50
    row_share: float = 0.05
    rows: float = 3


def best_shift(shift: Shift, limits: Limits) -> int:
    """Return the shift at which the columns belong together: 0 if that is where they are.

    Log-probs of neighbouring tokens are nearly independent, so columns that are off by one
    correlate near 1 at that shift and near 0 where they are; honest drift lowers the correlation
    at 0 but never raises it elsewhere. Rows are asked one by one as well, for logs in which only
    some are off.
    """
    r = np.nan_to_num(np.array(shift.correlations), nan=0.0)
    outer = 0 if r[0] >= r[2] else 2
    enough = shift.sums[outer, 0] >= limits.pairs
    if enough and r[outer] >= limits.correlation and r[outer] - r[1] >= limits.margin:
        return SHIFTS[outer]
    votes, voters = shift.votes[[0, 2]], shift.votes[3]
    if votes.sum() >= max(limits.rows, limits.row_share * voters):
        return SHIFTS[0 if votes[0] >= votes[1] else 2]
    return 0


def untrusted(shifts: Mapping[str, Shift], limits: Limits | None = None) -> dict[str, str]:
    """Ratio -> why it cannot be computed: its columns do not belong to the same tokens."""
    found = {ratio: best_shift(s, limits or Limits()) for ratio, s in shifts.items()}
    return {
        ratio: f"aligned log-prob columns; they correlate at a shift of {s:+d} token, not at 0"
        for ratio, s in found.items()
        if s
    }


def measure(kept: Kept, ratio: str) -> Shift:
    """Add one ratio of a batch up."""
    a, b = (np.maximum(kept.logp[name], FLOOR) for name in RATIOS[ratio])
    follows = (kept.position[1:] - kept.position[:-1] == 1) & (kept.row[1:] == kept.row[:-1])
    per_row = [
        _pair_sums(kept, a[1:], b[:-1], follows),
        _pair_sums(kept, a, b, None),
        _pair_sums(kept, a[:-1], b[1:], follows),
    ]
    return Shift(np.stack([by_row.sum(axis=1) for by_row in per_row]), _votes(per_row))


def _pair_sums(kept: Kept, a: Floats, b: Floats, pair: Bools | None) -> Floats:
    """(6, B) n, sum a, sum b, sum aa, sum bb, sum ab over the pairs of each row."""
    if pair is not None:
        a, b = np.append(a * pair, 0.0), np.append(b * pair, 0.0)
    count = np.ones(a.size) if pair is None else np.append(pair, False)
    return np.stack([kept.per_row(t[: kept.row.size]) for t in (count, a, b, a * a, b * b, a * b)])


def _votes(per_row: list[Floats]) -> Ints:
    voting: Bools = np.min([by_row[0] for by_row in per_row], axis=0) >= VOTING_TOKENS
    if not voting.any():
        return np.zeros(4, dtype=np.int64)
    r = np.stack([correlation(by_row[:, voting]) for by_row in per_row])
    r = np.where(np.isnan(r), -2.0, r)
    best = np.argmax(r, axis=0)
    shifted = (r.max(axis=0) > VOTE_BEST) & (r[1] < VOTE_ZERO)
    counts = [(shifted & (best == 0)).sum(), (best == 1).sum(), (shifted & (best == 2)).sum()]
    return np.array([*counts, voting.sum()], dtype=np.int64)


def correlation(sums: Floats) -> Floats:
    """Pearson's r of (n, sum a, sum b, sum aa, sum bb, sum ab); NaN where one side is constant."""
    n, a, b, aa, bb, ab = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = ab - a * b / n
        spread = (aa - a * a / n) * (bb - b * b / n)
        varies = spread > 1e-12 * aa * bb
        return np.asarray(np.where(varies, covariance / np.sqrt(np.abs(spread)), np.nan))
