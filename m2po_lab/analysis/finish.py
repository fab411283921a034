"""Cells -> the STATS dictionaries of the report; the only place where they become numbers."""

import math
from typing import Any

import numpy as np

from m2po_lab.analysis.bins import Floats, Ints, magnitudes, representative
from m2po_lab.analysis.bootstrap import intervals
from m2po_lab.analysis.cells import Cells
from m2po_lab.core.statistics import STATISTICS
from m2po_lab.core.tails import pareto_k, tail_length, top_count, top_share

Stats = dict[str, Any]
QUANTILES = {"abs_median": 0.5, "abs_p99": 0.99}


def statistics(cells: Cells) -> list[Stats]:
    """Return STATS of each cell in the order of `cells.keys`; null where it cannot be computed."""
    columns: dict[str, list[Any]] = {
        "n": cells.field("n").tolist(),
        "rows": cells.field("rows").tolist(),
    }
    sums = cells.sums
    with np.errstate(invalid="ignore", over="ignore"):
        for name, spec in STATISTICS.items():
            if spec.finish is not None:
                columns[name] = spec.finish(sums).tolist()
    for name, level in QUANTILES.items():
        columns[name] = [_abs_quantile(cells, i, level) for i in range(len(cells))]
    columns["top1pct_m2_share"] = [_top_share(cells, i) for i in range(len(cells))]
    columns["pareto_k"] = [_pareto_k(cells, i) for i in range(len(cells))]
    for name, bounds in zip(("m2", "ess"), intervals(cells), strict=True):
        columns[f"{name}_low"] = bounds[:, 0].tolist()
        columns[f"{name}_high"] = bounds[:, 1].tolist()
    return [
        {name: finite(values[i]) for name, values in columns.items()} for i in range(len(cells))
    ]


def finite(value: Any) -> Any:
    """Return None for NaN and infinities, everything else as it is."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _folded(cells: Cells, index: int) -> Ints:
    """Counts over |d|: exact zeros first, then the magnitude bins."""
    half, bins = magnitudes(cells.mantissa_bits), cells.field("bins")[index]
    folded: Ints = bins[half:].copy()
    folded[1:] += bins[half - 1 :: -1]
    return folded


def _abs_quantile(cells: Cells, index: int, level: float) -> float:
    """Quantile of |d| (the smallest value with at least that share at or below it).

    Exact where it lies among the largest values that are kept, else the middle of its bin: off by
    at most 2^-(bits + 1), .4 % with 7 mantissa bits, 1.6 % with 5; not resolved below 6e-8.
    """
    n = int(cells.field("n")[index])
    if n == 0:
        return math.nan
    rank = max(1, math.ceil(round(level * n, 9)))
    if n - rank < cells.size:
        return float(cells.field("top_abs")[index, n - rank])
    at = int(np.searchsorted(np.cumsum(_folded(cells, index)), rank))
    return float(representative(cells.mantissa_bits)[at])


def _descend(exact: Floats, counts: Ints, values: Floats, needed: int) -> Floats:
    """Return the `needed` largest values: exact ones first, the rest from bin middles.

    Args:
        exact: the largest values, descending, padded by -inf.
        counts: tokens a bin, bins in descending order of value, the exact ones included.
        values: the middle of each of these bins.
        needed: how many values to return.
    """
    known = exact[np.isfinite(exact)]
    if needed <= known.size:
        return known[:needed]
    left = np.maximum(np.cumsum(counts) - known.size, 0)
    counts = np.diff(left, prepend=0)
    last = int(np.searchsorted(np.cumsum(counts), needed - known.size)) + 1
    rest = np.repeat(values[:last], counts[:last])[: needed - known.size]
    return np.concatenate((known, np.minimum(rest, known[-1]) if known.size else rest))


def _top_share(cells: Cells, index: int) -> float:
    """Share of M2 in the top 1 %; exact while 1 % of the tokens fit the largest values kept."""
    n = int(cells.field("n")[index])
    folded, middle = _folded(cells, index), representative(cells.mantissa_bits)
    top = _descend(cells.field("top_abs")[index], folded[::-1], middle[::-1], top_count(n))
    return float(top_share(top, cells.field("square")[index], n))


def _pareto_k(cells: Cells, index: int) -> float:
    """Pareto k-hat; exact while the tail fits the largest values kept, else from bin middles."""
    n, middle = int(cells.field("n")[index]), representative(cells.mantissa_bits)
    signed = np.concatenate((middle[::-1], -middle[1:]))
    bins = cells.field("bins")[index][::-1]
    needed = min(n, tail_length(n) + 1)
    tail = _descend(cells.field("top")[index], bins, signed, needed)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(pareto_k(tail, n))
