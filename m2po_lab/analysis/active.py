"""Trust-region tokens by mini-batch and by lag: what M2PO and a clip would do to any log.

Per scope (mini-batch, else step, else log) the active tokens' |d| is histogrammed; M2PO's mask of a
scope follows up to the one bin that holds its threshold. Per lag the active tokens and those of
them that a clip drops are counted a bootstrap bucket. A scope takes about 13 kB.
"""

from dataclasses import dataclass
from math import inf, log

import numpy as np

from m2po_lab.analysis.bins import Bools, Floats, Ints
from m2po_lab.analysis.bootstrap import BUCKETS
from m2po_lab.analysis.cells import codes_of
from m2po_lab.analysis.chunk import Chunk
from m2po_lab.analysis.grouped import weighted_count
from m2po_lab.analysis.keyed import COUNT, Column, Keyed
from m2po_lab.analysis.options import Options
from m2po_lab.logs.rows import UNKNOWN

LOWEST_EXPONENT, OCTAVES, BITS = -10, 26, 5
"""|d| from 2^-10 to 2^16 in bins 3 % wide, one bin below; budgets under 1e-6 get no bracket."""
WIDTH = (OCTAVES << BITS) + 1
SCOPE = {
    "n": COUNT,
    "active": Column(0, np.add, np.int64, WIDTH),
    "square": Column(0.0, np.add, width=WIDTH),
}
LAG = {
    "active": Column(0, np.add, np.int64, BUCKETS),
    "clipped": Column(0, np.add, np.int64, BUCKETS),
}


def edges() -> Floats:
    """Lower edges of the bins of |d| and, last, infinity: (WIDTH + 1,)."""
    step = np.arange(WIDTH - 1, dtype=np.int64) + ((1023 + LOWEST_EXPONENT) << BITS)
    return np.concatenate(([0.0], (step << (52 - BITS)).view(np.float64), [np.inf]))


def bin_of(size: Floats) -> Ints:
    """Bin of each |d|."""
    code = (size.view(np.int64) >> (52 - BITS)) - ((1023 + LOWEST_EXPONENT) << BITS) + 1
    binned: Ints = np.clip(code, 0, WIDTH - 1)
    return binned


def is_active(d: Floats, advantage: Floats) -> Bools:
    """Trust-region tokens: (A > 0, d > 0) or (A < 0, d < 0)."""
    active: Bools = ((advantage > 0) & (d > 0)) | ((advantage < 0) & (d < 0))
    return active


def clipped(d: Floats, advantage: Floats, low: float, high: float) -> Bools:
    """Tokens past their bound: A > 0 and r > 1 + high, or A < 0 and r < 1 - low."""
    floor = log(1 - low) if low < 1 else -inf
    past: Bools = ((advantage > 0) & (d > log(1 + high))) | ((advantage < 0) & (d < floor))
    return past


def add_scopes(table: Keyed, chunk: Chunk, d: Floats, advantage: Floats) -> None:
    """Add a chunk whose log-ratios and advantages are finite."""
    scope = np.stack((chunk.step, chunk.mini_batch), axis=1)
    keys, code = np.unique(scope, axis=0, return_inverse=True)
    owner, groups = code.reshape(-1)[chunk.row], len(keys)
    n = np.bincount(owner, minlength=groups)
    active = np.flatnonzero(is_active(d, advantage))
    size = np.abs(d[active])
    wide, length = owner[active] * WIDTH + bin_of(size), groups * WIDTH
    counts = np.bincount(wide, minlength=length).reshape(groups, WIDTH)
    square = weighted_count(wide, size * size, length).reshape(groups, WIDTH)
    seen = n > 0
    names = [tuple(key) for key in keys[seen].tolist()]
    table.add(names, {"n": n[seen], "active": counts[seen], "square": square[seen]})


def add_lags(table: Keyed, chunk: Chunk, d: Floats, advantage: Floats, options: Options) -> None:
    """Add a chunk whose log-ratios and advantages are finite."""
    use = np.flatnonzero(is_active(d, advantage) & (chunk.lag != UNKNOWN))
    if not use.size:
        return
    keys, code = codes_of(chunk.lag[use])
    wide = code * BUCKETS + chunk.bucket[chunk.row[use]]
    past = clipped(d[use], advantage[use], options.clip_low, options.clip_high)
    counts = (np.bincount(w, minlength=len(keys) * BUCKETS) for w in (wide, wide[past]))
    active, beyond = (c.reshape(len(keys), BUCKETS) for c in counts)
    table.add(keys, {"active": active, "clipped": beyond})


@dataclass(frozen=True, eq=False)
class Masked:
    """What M2PO masks in each scope, from histograms; arrays with one entry a scope.

    Attributes:
        low, high: bounds of the number of masked tokens.
        estimate: that number if the tokens of the boundary bin were all alike.
        square: sum of d^2 over the active tokens that stay, by that estimate.
        threshold: lower edge of the boundary bin of |d|; inf where nothing is masked.
    """

    low: Ints
    high: Ints
    estimate: Ints
    square: Floats
    threshold: Floats


def masked(table: Keyed, budget: float) -> Masked:
    """Solve every scope for a budget."""
    count, square = table.field("active"), table.field("square")
    n, total = np.cumsum(count, axis=1), np.cumsum(square, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        over = (n > 0) & (total / n > budget)
    some, at = over.any(axis=1), np.argmax(over, axis=1)
    row = np.arange(len(table))
    inside = count[row, at]
    before, mass = n[row, at] - inside, total[row, at] - square[row, at]
    room = budget * before - mass
    low_edge, high_edge = edges()[at], edges()[at + 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = np.sqrt(square[row, at] / inside)
    fits = [_fitting(room, edge, budget, inside) for edge in (low_edge, middle, high_edge)]
    active = n[:, -1]
    gone = [np.where(some, active - before - fit, 0) for fit in fits]
    kept = np.where(some, mass + fits[1] * middle**2, total[:, -1])
    return Masked(gone[0], gone[2], gone[1], kept, np.where(some, low_edge, np.inf))


def _fitting(room: Floats, size: Floats, budget: float, inside: Ints) -> Ints:
    """How many tokens of this |d| the budget still takes; not all of them, or the bin would fit."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        cost = size * size - budget
        fit = np.where(cost > 0, np.floor(room / cost), np.inf)
    fit = np.clip(np.nan_to_num(fit, nan=0.0), 0, np.maximum(inside - 1, 0))
    return np.asarray(fit, dtype=np.int64)
