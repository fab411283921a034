"""What adds up by step, and by step, trainer version and lag: the time line of a run."""

from dataclasses import dataclass

import numpy as np

from m2po_lab.integrity.additive import Additive, Bools, Floats, Ints, Span, span
from m2po_lab.integrity.flat import Flat
from m2po_lab.integrity.kept import Kept
from m2po_lab.logs.rows import UNKNOWN

Cell = tuple[int, int, int]
"""(step, trainer version, lag); UNKNOWN where the log does not say."""
CELL_SUMS = ("n", "rows", "log_ratio", "square", "row_square", "row_cross", "row_count", "signal")
"""Of a cell's rows i with n_i tokens and S_i = sum d^2: sum n_i, rows, sum d, sum S_i, sum S_i^2,
sum S_i n_i, sum n_i^2 (they give the standard error of M2 with rows as clusters), tokens with A !=
0."""


@dataclass(frozen=True)
class Step(Additive):
    """One step.

    Args:
        rows: rows with a kept token.
        tokens: kept tokens.
        advantages: kept tokens whose advantage is known.
        signal: those of them with an advantage other than 0.
        entropy: (2,) kept tokens with entropy, its sum in nats.
        surprise: (2,) kept tokens with behavior log-probs, sum of -log-prob.
        lag: smallest and largest known lag, or None.
        length_lag: (6,) over rows with known lag: n, sum l, sum g, sum ll, sum gg, sum lg of
            l = log kept tokens and g = the middle of its lags.
    """

    rows: int
    tokens: int
    advantages: int
    signal: int
    entropy: Floats
    surprise: Floats
    lag: Span | None
    length_lag: Floats


def by_step(flat: Flat) -> dict[int, Step]:
    """Add a batch up by step."""
    step = flat.row_fact(flat.rows.step)
    counts = flat.per_row(flat.keep)
    found = {}
    for value in np.unique(step[counts > 0]).tolist():
        found[value] = _step(flat, (step == value) & (counts > 0), counts)
    return found


def _step(flat: Flat, rows: Bools, counts: Floats) -> Step:
    keep = flat.keep & np.repeat(rows, flat.lengths)
    known = signal = 0
    if flat.advantage is not None:
        known = int((keep & np.isfinite(flat.advantage)).sum())
        signal = int((keep & np.isfinite(flat.advantage) & (flat.advantage != 0)).sum())
    behavior = flat.logp.get("behavior_logp")
    lag = flat.lag[keep]
    return Step(
        rows=int(rows.sum()),
        tokens=int(keep.sum()),
        advantages=known,
        signal=signal,
        entropy=_total(flat.entropy, keep),
        surprise=_total(None if behavior is None else -behavior, keep),
        lag=span(lag[lag != UNKNOWN]),
        length_lag=_length_lag(flat, rows, counts),
    )


def _total(values: Floats | None, keep: Bools) -> Floats:
    if values is None:
        return np.zeros(2)
    kept = values[keep]
    kept = kept[np.isfinite(kept)]
    return np.array([kept.size, kept.sum()])


def _length_lag(flat: Flat, rows: Bools, counts: Floats) -> Floats:
    low, high = flat.row_lag
    use = rows & (low != UNKNOWN)
    lag, length = (low[use] + high[use]) / 2.0, np.log(counts[use])
    return np.array(
        [
            lag.size,
            length.sum(),
            lag.sum(),
            (length**2).sum(),
            (lag**2).sum(),
            (length * lag).sum(),
        ]
    )


def by_cell(kept: Kept, ratio: str) -> dict[Cell, Floats]:
    """Sums of `CELL_SUMS` by cell; a row that spans versions counts once in each of its lags."""
    if not kept.index.size:
        return {}
    flat, d, row, lag = kept.flat, kept.log_ratios[ratio], kept.row, kept.lag
    change = np.ones(row.shape, np.bool_)
    change[1:] = (row[1:] != row[:-1]) | (lag[1:] != lag[:-1])
    start = np.flatnonzero(change)
    n = np.diff(np.append(start, row.size)).astype(np.float64)
    total, square = np.add.reduceat(d, start), np.add.reduceat(d * d, start)
    signal = np.zeros(row.shape)
    if kept.advantage is not None:
        signal = (np.nan_to_num(kept.advantage) != 0).astype(np.float64)
    terms = (
        n,
        np.ones_like(n),
        total,
        square,
        square**2,
        square * n,
        n * n,
        np.add.reduceat(signal, start),
    )
    facts = (flat.row_fact(flat.rows.step), flat.row_fact(flat.rows.train_version))
    keys = np.stack([fact[row[start]] for fact in facts] + [lag[start]], axis=1)
    cells, cell = np.unique(keys, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    sums = np.stack([np.bincount(cell, weights=t, minlength=len(cells)) for t in terms], axis=1)
    return {tuple(key): total for key, total in zip(cells.tolist(), sums, strict=True)}


@dataclass(frozen=True)
class Halves(Additive):
    """Early against late tokens within rows that one version sampled.

    Args:
        rows: (3,) rows whose later half has the larger mean d^2, the smaller, the same.
        squares: (2,) sum over rows of the mean d^2 of the first and of the second half.
    """

    rows: Ints
    squares: Floats


HALF_TOKENS = 8
"""Kept tokens a row needs in each half."""


def halves(kept: Kept, ratio: str) -> Halves:
    """Compare the halves of every long enough row."""
    counts, row = kept.counts, kept.row
    before = np.cumsum(counts) - counts
    late = (np.arange(row.size) - before[row]) * 2 >= counts[row]
    square = kept.log_ratios[ratio] ** 2
    sums = kept.per_row(np.where(late, 0.0, square)), kept.per_row(np.where(late, square, 0.0))
    later = kept.per_row(late)
    size = counts - later, later
    low, high = kept.flat.row_lag
    use = (np.minimum(*size) >= HALF_TOKENS) & (low == high)
    first, second = (sums[h][use] / size[h][use] for h in (0, 1))
    rows = np.array([(second > first).sum(), (second < first).sum(), (second == first).sum()])
    return Halves(rows, np.array([first.sum(), second.sum()]))
