"""One pass over tokens that fills the cells of all groupings.

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
    lowest_values,
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

    def added(self) -> dict[str, Floats]:
        """What each token adds to the fields of core `Sums`."""
        return {
            "log_ratio": self.d,
            "square": self.d * self.d,
            "absolute": np.abs(self.d),
            "k3": self.k3,
            "ratio_excess": self.excess,
            "square_excess": self.square_excess,
        }

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


@dataclass(frozen=True, eq=False)
class Pieces:
    """Tokens added up in pieces that no grouping cuts, each of one row's bucket; arrays of (P,).

    Attributes:
        bucket: bootstrap bucket.
        count: tokens.
        sums: name as in `Terms.added` -> sum over the piece.
        low: smallest d.
        high: largest d.
    """

    bucket: Ints
    count: Ints
    sums: dict[str, Floats]
    low: Floats
    high: Floats

    def where(self, keep: Bools) -> "Pieces":
        """Return some of the pieces."""
        sums = {name: values[keep] for name, values in self.sums.items()}
        return Pieces(self.bucket[keep], self.count[keep], sums, self.low[keep], self.high[keep])


def pieces_by_run(t: Terms, starts: Ints) -> Pieces:
    """Add up runs of neighbouring tokens of one row; `starts` is the first token of each."""
    return Pieces(
        bucket=t.bucket[starts],
        count=np.diff(starts, append=t.d.size),
        sums={name: np.add.reduceat(values, starts) for name, values in t.added().items()},
        low=np.minimum.reduceat(t.d, starts),
        high=np.maximum.reduceat(t.d, starts),
    )


def pieces_by_code(t: Terms, code: Ints, codes: int) -> tuple[Pieces, Ints]:
    """Add up the tokens of each code and bucket; return the pieces and the code of each."""
    wide, length = code * BUCKETS + t.bucket, codes * BUCKETS
    count = np.bincount(wide, minlength=length)
    low, high = np.full(length, np.inf), np.full(length, -np.inf)
    np.minimum.at(low, wide, t.d)
    np.maximum.at(high, wide, t.d)
    sums = {name: weighted_count(wide, values, length) for name, values in t.added().items()}
    place = np.arange(length)
    every = Pieces(place % BUCKETS, count, sums, low, high)
    seen = count > 0
    return every.where(seen), place[seen] // BUCKETS


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
    if names:
        pieces, owner = pieces_by_code(t, code, len(names))
        fill(cells, pieces, owner, t, code)
        cells.columns["rows"][:] = rows_per_group(t.row, code, n_rows, len(names))
    return cells


def fill(
    cells: Cells, pieces: Pieces, owner: Ints, t: Terms, code: Ints, known: Cells | None = None
) -> None:
    """Fill the cells of a grouping, all but `rows`.

    Args:
        cells: empty ones, a key a group.
        pieces: the tokens' sums.
        owner: (P,) cell of each piece.
        t: the tokens themselves.
        code: (N,) cell of each token.
        known: what these cells will be absorbed by; only larger values than its own are looked for.
    """
    groups, column = len(cells.keys), cells.columns
    wide, length = owner * BUCKETS + pieces.bucket, groups * BUCKETS

    def add(weights: Floats) -> Floats:
        return weighted_count(wide, weights, length).reshape(groups, BUCKETS)

    count = add(pieces.count.astype(np.float64)).astype(np.int64)
    sums = {name: add(values) for name, values in pieces.sums.items()}
    column["bucket_n"][:], column["bucket_square"][:] = count, sums["square"]
    column["n"][:] = count.sum(axis=1)
    for name, values in sums.items():
        column[name][:] = values.sum(axis=1)
    np.minimum.at(column["low"], owner, pieces.low)
    np.maximum.at(column["high"], owner, pieces.high)
    _log_sums(cells, t, code, count, sums)
    _histogram(cells, t, code, known)


def _log_sums(cells: Cells, t: Terms, code: Ints, count: Ints, sums: dict[str, Floats]) -> None:
    """Log of the sums of e^d and e^2d, a bucket and a cell, without overflow or cancellation."""
    column, n = cells.columns, cells.columns["n"]
    for name, bucket, excess, scale in (
        ("log_ratio_sum", "bucket_log_ratio", sums["ratio_excess"], 1),
        ("log_square_sum", "bucket_log_square", sums["square_excess"], 2),
    ):
        total = count + excess
        if t.safe and float(np.min(total.sum(axis=1) / n)) > CANCELLED:
            with np.errstate(divide="ignore"):
                column[bucket][:] = np.log(np.maximum(total, 0.0))
                column[name][:] = np.log(total.sum(axis=1))
            continue
        wide = code * BUCKETS + t.bucket
        peak = np.full(count.size, -np.inf)
        np.maximum.at(peak, wide, scale * t.d)
        weight = np.exp(scale * t.d - peak[wide])
        with np.errstate(divide="ignore"):
            logs = np.log(weighted_count(wide, weight, count.size)) + peak
        column[bucket][:] = logs.reshape(count.shape)
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


def _histogram(cells: Cells, t: Terms, code: Ints, known: Cells | None) -> None:
    """Count log-ratio bins and pick the largest values of every cell out of its top bins."""
    binned = t.fine if cells.mantissa_bits == FINE else t.coarse
    half, groups = magnitudes(cells.mantissa_bits), len(cells.keys)
    width, one = 2 * half + 1, groups == 1
    flat = np.bincount(binned if one else code * width + binned, minlength=groups * width)
    bins = flat.reshape(groups, width)
    cells.columns["bins"][:] = bins
    folded = bins[:, half:].copy()
    folded[:, 1:] += bins[:, half - 1 :: -1]
    floors = lowest_values(cells.mantissa_bits)
    for name, values, lowest, counts in (
        ("top", t.d, floors, bins),
        ("top_abs", np.abs(t.d), floors[half:], folded),
    ):
        least = lowest[_floor(counts, cells.size)]
        if known is not None:
            least = np.maximum(least, known.smallest(name, cells.keys))
        candidates = values >= (least[0] if one else least[code])
        cells.columns[name][:] = _top(values, code, candidates, cells)


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
