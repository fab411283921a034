"""One pass over tokens that fills the cells of a whole grouping.

The terms of `core.moments.sums` are computed once a token and added up for every grouping by a
weighted count over (group, bootstrap bucket); tests hold every cell to `core.moments.sums` of its
tokens.
"""

from dataclasses import dataclass, replace

import numpy as np

from m2po_lab.analysis.bins import (
    COARSE,
    FINE,
    Bools,
    Floats,
    Ints,
    coarser,
    log_ratio_code,
    magnitudes,
)
from m2po_lab.analysis.bootstrap import BUCKETS
from m2po_lab.analysis.cells import Cells, codes_of
from m2po_lab.core.moments import EXPM1_LIMIT, k3_terms

SAFE = 300.0
"""Up to this |d| neither e^d nor e^2d leaves the range of float64."""
CANCELLED = 1e-3
"""Below this mean weight n + sum(e^d - 1) has lost digits and e^d is summed by itself."""


@dataclass(frozen=True, eq=False)
class Terms:
    """What each kept token adds to the sums, all (N,).

    Attributes:
        d: log-ratio, finite.
        row: row in the batch.
        bucket: bootstrap bucket of that row.
        k3: e^d - 1 - d.
        excess: e^d - 1.
        square_excess: e^2d - 1.
        fine: code of the log-ratio bin with `FINE` mantissa bits.
        coarse: the same with `COARSE` bits.
        safe: no |d| exceeds `SAFE`.
    """

    d: Floats
    row: Ints
    bucket: Ints
    k3: Floats
    excess: Floats
    square_excess: Floats
    fine: Ints
    coarse: Ints
    safe: bool

    def where(self, keep: Bools) -> "Terms":
        """Return the terms of some of the tokens."""
        arrays = ("d", "row", "bucket", "k3", "excess", "square_excess", "fine", "coarse")
        return replace(self, **{name: getattr(self, name)[keep] for name in arrays})


def terms(d: Floats, row: Ints, row_bucket: Ints) -> Terms:
    """Compute the terms of kept log-ratios.

    Args:
        d: (N,) finite log-ratios.
        row: (N,) row of each in the batch.
        row_bucket: (B,) bootstrap bucket of each row.
    """
    fine = log_ratio_code(d, FINE)
    safe = bool(d.size == 0 or max(float(d.max()), -float(d.min())) <= SAFE)
    with np.errstate(over="ignore"):
        excess = np.expm1(d) if safe else _expm1(d)
        square = np.expm1(2 * d) if safe else _expm1(2 * d)
    return Terms(d, row, row_bucket[row], k3_terms(d), excess, square, fine, coarser(fine), safe)


def _expm1(d: Floats) -> Floats:
    return np.where(d > EXPM1_LIMIT, np.inf, np.expm1(np.minimum(d, EXPM1_LIMIT)))


def group(t: Terms, keys: Ints, n_rows: int, size: int, bits: int = COARSE) -> Cells:
    """Return the cells of tokens grouped by key.

    Args:
        t: terms of the tokens.
        keys: (N,) group of each token.
        n_rows: rows in the batch.
        size: how many largest values to keep a cell.
        bits: mantissa bits of the histogram, `FINE` or `COARSE`.
    """
    names, code = codes_of(keys)
    cells = Cells(bits, size, names)
    if not names:
        return cells
    groups, column = len(names), cells.columns
    wide = code * BUCKETS + t.bucket

    def add(weights: Floats) -> Floats:
        flat = weighted_count(wide, weights, groups * BUCKETS)
        return flat.reshape(groups, BUCKETS)

    count = np.bincount(wide, minlength=groups * BUCKETS).reshape(groups, BUCKETS)
    square, excess, square_excess = add(t.d * t.d), add(t.excess), add(t.square_excess)
    column["bucket_n"][:], column["bucket_square"][:] = count, square
    column["n"][:] = count.sum(axis=1)
    column["rows"][:] = rows_per_group(t.row, code, n_rows, groups)
    for name, values in (
        ("square", square),
        ("log_ratio", add(t.d)),
        ("absolute", add(np.abs(t.d))),
        ("k3", add(t.k3)),
        ("ratio_excess", excess),
        ("square_excess", square_excess),
    ):
        column[name][:] = values.sum(axis=1)
    np.minimum.at(column["low"], code, t.d)
    np.maximum.at(column["high"], code, t.d)
    _log_sums(cells, t, code, wide, count, excess, square_excess)
    _histogram(cells, t, code)
    return cells


def _log_sums(
    cells: Cells,
    t: Terms,
    code: Ints,
    wide: Ints,
    count: Ints,
    excess: Floats,
    square_excess: Floats,
) -> None:
    """Log of the sums of e^d and e^2d, a bucket and a cell, without overflow or cancellation."""
    column, n, shape = cells.columns, cells.columns["n"], count.shape
    for name, bucket, total, scale in (
        ("log_ratio_sum", "bucket_log_ratio", count + excess, 1),
        ("log_square_sum", "bucket_log_square", count + square_excess, 2),
    ):
        if t.safe and float(np.min(total.sum(axis=1) / n)) > CANCELLED:
            with np.errstate(divide="ignore"):
                column[bucket][:] = np.log(np.maximum(total, 0.0))
                column[name][:] = np.log(total.sum(axis=1))
            continue
        peak = np.full(count.size, -np.inf)
        np.maximum.at(peak, wide, scale * t.d)
        weight = np.exp(scale * t.d - peak[wide])
        with np.errstate(divide="ignore"):
            logs = np.log(np.bincount(wide, weights=weight, minlength=count.size)) + peak
        column[bucket][:] = logs.reshape(shape)
        column[name][:] = np.logaddexp.reduce(column[bucket], axis=1)


def weighted_count(code: Ints, weights: Floats, length: int) -> Floats:
    """Return the sum of the weights of each code, 0 to length - 1."""
    return np.bincount(code, weights=weights, minlength=length).astype(np.float64, copy=False)


def rows_per_group(row: Ints, code: Ints, n_rows: int, groups: int) -> Ints:
    """Return in how many rows each group occurs."""
    if n_rows * groups <= max(1 << 24, 4 * row.size):
        seen = np.zeros(n_rows * groups, dtype=np.bool_)
        seen[row * groups + code] = True
        counts: Ints = seen.reshape(n_rows, groups).sum(axis=0)
        return counts
    pairs = np.unique(row * groups + code)
    return np.bincount(pairs % groups, minlength=groups)


def _histogram(cells: Cells, t: Terms, code: Ints) -> None:
    """Count log-ratio bins and pick the largest values of every cell out of its top bins."""
    binned = t.fine if cells.mantissa_bits == FINE else t.coarse
    half, groups = magnitudes(cells.mantissa_bits), len(cells.keys)
    width = 2 * half + 1
    flat = np.bincount(code * width + binned, minlength=groups * width)
    bins = flat.reshape(groups, width)
    cells.columns["bins"][:] = bins
    folded = bins[:, half:].copy()
    folded[:, 1:] += bins[:, half - 1 :: -1]
    cells.columns["top"][:] = _top(t.d, code, binned >= _floor(bins, cells.size)[code], cells)
    size = np.abs(binned - half)
    candidates = size >= _floor(folded, cells.size)[code]
    cells.columns["top_abs"][:] = _top(np.abs(t.d), code, candidates, cells)


def _floor(bins: Ints, size: int) -> Ints:
    """Return per cell the lowest bin that may hold one of its `size` largest values."""
    above = np.cumsum(bins[:, ::-1], axis=1)
    reached = above >= size
    first = np.argmax(reached, axis=1)
    return np.where(reached.any(axis=1), bins.shape[1] - 1 - first, 0)


def _top(values: Floats, code: Ints, candidates: Bools, cells: Cells) -> Floats:
    """Return the largest values of each cell among the candidates, descending, padded by -inf."""
    value, owner = values[candidates], code[candidates]
    order = np.lexsort((-value, owner))
    value, owner = value[order], owner[order]
    counts = np.bincount(owner, minlength=len(cells.keys))
    rank = np.arange(owner.size) - (np.cumsum(counts) - counts)[owner]
    keep = rank < cells.size
    top = np.full((len(cells.keys), cells.size), -np.inf)
    top[owner[keep], rank[keep]] = value[keep]
    return top
