"""M2PO's selection (arXiv 2510.01161, Algorithm 1): solve the threshold once, apply it anywhere.

H are the trust-region tokens of the optimizer mini-batch, over all its micro-batches and ranks.
While the mean of d^2 over what is left of H exceeds the budget, the largest d^2 goes. Tokens
outside H always stay. As a rule for one token: it goes if it is in H and d^2 > v*; of the tokens
tied at v* the first in canonical order (global row, position) stay, as many as the budget allows.

What is guaranteed. The mask is the one that Algorithm 1 gives when it sorts H by d^2 = fl(d * d),
d = float64(numerator) - float64(denominator), and decides by fl(fl(sum) / n) <= budget with the sum
rounded once. Sums are exact integers (see `exact`), so no bit of the mask, the threshold or the
means depends on the order of rows, on the split into micro-batches or ranks, on the array library
or on whether a compiled kernel is used.

Cost: two passes over the tokens in chunks (three where ties are split), no sort, O(n). Up to
`selection_keys.FEW` tokens in one process are sorted instead, which is quicker and decides alike.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from m2po_lab.core import selection_keys, selection_scan
from m2po_lab.core.arrays import Array, namespace
from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.exact import Budget, mean, multiple
from m2po_lab.core.host import to_library
from m2po_lab.core.selection_keys import Sorted, Tallied
from m2po_lab.core.selection_parts import (
    POSITION_BITS,
    Reduce,
    Rows,
    part,
    parts_of,
    places_of,
    reducer,
    row_numbers,
)
from m2po_lab.core.selection_variants import Released, keep_all_tokens, keep_areal, keep_released

__all__ = [
    "Released",
    "Threshold",
    "apply",
    "eligible",
    "keep_all_tokens",
    "keep_areal",
    "keep_m2po",
    "keep_released",
    "solve_threshold",
]


@dataclass(frozen=True)
class Threshold:
    """What Algorithm 1 decides for one mini-batch; `apply` turns it into a mask.

    Attributes:
        value: v* in nats^2. A token of H goes if d^2 > v*; inf where none goes.
        budget: the bound it was solved for.
        active: tokens in H.
        masked: how many of them go.
        m2_before: mean of d^2 over H in nats^2, NaN where H is empty.
        m2_after: mean of d^2 over what stays of H, at most the budget; NaN where nothing stays.
        ties: tokens of H with d^2 = v* of which only some stay; 0 if none or all of them do.
        ties_kept: how many of those stay.
        tie_row: canonical number of the row of the last one that stays; -1 without such ties.
        tie_position: its position in that row; -1 without such ties.
        ratio: the log-ratio it is about.
        scope: what it was solved over, as the caller called it.
    """

    value: float
    budget: float
    active: int
    masked: int
    m2_before: float
    m2_after: float
    ties: int = 0
    ties_kept: int = 0
    tie_row: int = -1
    tie_position: int = -1
    ratio: str = "current/behavior"
    scope: str = "mini-batch"
    _numbers: Any = field(default=None, repr=False, compare=False)
    _alone: bool = field(default=False, repr=False, compare=False)

    @property
    def log_ratio(self) -> float:
        """The cut of |d| in nats, sqrt(v*)."""
        return float(np.sqrt(self.value))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out which batch came where: it is known by the very objects."""
        return {**self.__dict__, "_numbers": None}


def eligible(batch: TokenBatch, ratio: str = "current/behavior") -> Array:
    """Trust-region tokens H: valid and (A > 0 and d > 0) or (A < 0 and d < 0); A = 0 never is.

    Taken from the sign of the log-ratio: a ratio in float32 would lose tokens with |d| < 6e-8.

    Returns:
        Boolean, the batch's shape.

    Raises:
        ValueError: no advantages, or a column of the ratio is absent.
    """
    if batch.advantage is None:
        raise ValueError("trust-region tokens need advantage, which this batch does not have")
    d, a = batch.log_ratio(ratio), batch.advantage
    return namespace(d).logical_and(batch.keep, ((a > 0) & (d > 0)) | ((a < 0) & (d < 0)))


def solve_threshold(
    batches: TokenBatch | Iterable[TokenBatch],
    budget: float,
    ratio: str = "current/behavior",
    reduce: Reduce | None = None,
    *,
    rows: Any = None,
    scope: str = "mini-batch",
) -> Threshold:
    """Find v* of a mini-batch: one batch, or its micro-batches, on one rank or on several.

    Over ranks: every rank calls this with its own micro-batches and the same `reduce`, which sums a
    tally of 786 kB, then 98 kB for each of four digits of the boundary, and as much again where
    tied tokens are split. A non-finite log-ratio on one rank raises on all of them.

    Args:
        batches: a TokenBatch or several (all are held until the end). No gradient flows through.
        budget: bound on the mean of d^2 over H in nats^2, at least 0 (0.04 in the paper); inf masks
            nothing.
        ratio: which log-ratio d is.
        reduce: gets an int64 array (of the batch's library, on its device) and returns its sum over
            ranks, or sums in place and returns None, as `torch.distributed.all_reduce` does.
        rows: canonical number of every row in the mini-batch, unique, from 0 to 2^32 - 1: (B,)
            integers for one batch, a sequence of those for several. None counts the rows in the
            order given. Needed with `reduce`: tied tokens go by it.
        scope: what the batches are together, for the record.

    Raises:
        ValueError: a NaN or infinite log-ratio on a kept token (names the rows), a budget that is
            negative or NaN, a missing column, or row numbers that do not fit.
    """
    bound = _bound(budget)
    parts = parts_of(batches, ratio, rows, reduce)
    few = reduce is None and sum(p.columns.size for p in parts) <= selection_keys.FEW
    squares = Sorted(parts) if few else Tallied(parts, reducer(parts, reduce))
    n, before = squares.n, mean(squares.total, squares.n)
    shared: dict[str, Any] = {"budget": bound, "active": n, "ratio": ratio, "scope": scope}
    shared["m2_before"] = before
    shared["_numbers"] = WeakKeyDictionary({p.batch: p.rows for p in parts})
    shared["_alone"] = rows is None and len(parts) == 1
    if n == 0 or before <= bound:
        return Threshold(value=float("inf"), masked=0, m2_after=before, **shared)
    boundary, kept = squares.first_masked(Budget(bound))
    stay = boundary.below + kept
    shared["masked"] = n - stay
    shared["m2_after"] = mean(boundary.below_total + kept * multiple(boundary.key), stay)
    if kept == 0:
        return Threshold(value=_value(boundary.key - 1), **shared)
    value = _value(boundary.key)
    places = places_of(parts, lambda scan, columns: scan.ties(columns, value))
    row, position = divmod(squares.place(places, kept), 1 << POSITION_BITS)
    shared |= {"tie_row": row, "tie_position": position}
    return Threshold(value, ties=boundary.ties, ties_kept=kept, **shared)


def apply(batch: TokenBatch, threshold: Threshold, rows: Rows = None) -> Array:
    """Give the keep mask of one batch: its valid tokens but those that the threshold takes out.

    Args:
        batch: any part of the mini-batch that the threshold was solved over.
        threshold: from `solve_threshold`, on this rank or another.
        rows: canonical numbers of its rows, as there. Read only where tied tokens are split, and
            known for the very objects that were passed to `solve_threshold`.

    Returns:
        Boolean, the batch's shape, library and device.

    Raises:
        ValueError: tied tokens are split and the numbers of the rows are not known.
    """
    mine = part(batch, threshold.ratio)
    kept = mine.scan.mark(mine.columns, threshold.value)
    if threshold.ties:
        numbers = threshold._numbers or {}
        if rows is None and batch not in numbers and not threshold._alone:
            raise ValueError(
                f"{threshold.ties_kept} of {threshold.ties} tied tokens stay, and which depends on"
                " the numbers of the rows in the mini-batch: pass rows="
            )
        given = numbers.get(batch, np.arange(batch.n_rows)) if rows is None else rows
        mine = part(batch, threshold.ratio, row_numbers(given, batch))
        tied = mine.scan.ties(mine.columns, threshold.value)
        last = (threshold.tie_row << POSITION_BITS) + threshold.tie_position
        gone = tied[mine.places(tied) > last]
        kept.reshape(-1)[to_library(gone, kept)] = False
    return to_library(kept, batch.keep) if mine.scan is selection_scan else kept


def keep_m2po(batch: TokenBatch, budget: float, ratio: str = "current/behavior") -> Array:
    """Keep every valid token but those Algorithm 1 masks, with this batch as the mini-batch.

    Raises:
        ValueError: as `solve_threshold`.
    """
    return apply(batch, solve_threshold(batch, budget, ratio))


def _bound(budget: float) -> float:
    bound = float(budget)
    if not bound >= 0:
        raise ValueError(
            f"budget is {budget}; pass a bound on the mean squared log-ratio in nats^2 that is at"
            " least 0, such as the paper's 0.04"
        )
    return bound


def _value(key: int) -> float:
    return float(np.int64(key).view(np.float64))
