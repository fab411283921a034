"""What a loss function divides a kept token by, read off its gradient."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from m2po_lab.conformance.cases import Case, Mask
from m2po_lab.conformance.variants import Variant

WEIGHT_TOLERANCE = 1e-3
"""Relative; float32 losses are good to about 1e-5, another weight is off by percents."""


@dataclass(frozen=True)
class Divisor:
    """What kept tokens were divided by, against the counts it may be.

    Attributes:
        value: D of each row in -gradient = r A / D, the median over its kept tokens; NaN for none.
        valid: valid tokens of each row.
        kept: kept tokens of each row.
        uniform: whether the weight is r A: one D explains the gradient of every kept token of a
            row, and over rows it is one number or in proportion to their valid or kept tokens.
        decides: whether the counts are known, which a token with A = 0 hides.
    """

    value: npt.NDArray[np.float64]
    valid: npt.NDArray[np.int64]
    kept: npt.NDArray[np.int64]
    uniform: bool
    decides: bool


def divisor(case: Case, gradient: npt.NDArray[Any], mask: Mask) -> Divisor:
    """Estimate D from -gradient = r A / D on kept tokens, and whether one D explains a row."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        each = -np.exp(case.log_ratio) * case.advantage / gradient
    value = np.full(len(mask), np.nan)
    uniform = True
    for row in np.flatnonzero(mask.any(axis=1)):
        own = each[row][mask[row]]
        value[row] = np.median(own)
        uniform &= _alike(own)
    valid, kept = case.keep.sum(axis=1), mask.sum(axis=1)
    some = np.isfinite(value)
    by_row = (value[some] / count[some] for count in (np.ones_like(valid), valid, kept))
    return Divisor(
        value=value,
        valid=valid,
        kept=kept,
        uniform=uniform and any(_alike(v) for v in by_row),
        decides=bool((case.countable == case.keep).all()),
    )


def _alike(values: npt.NDArray[np.float64]) -> bool:
    """Whether all are the same number up to rounding."""
    middle = np.median(values) if values.size else 0.0
    return bool(np.all(np.abs(values - middle) <= WEIGHT_TOLERANCE * abs(middle)))


def name_divisor(divisors: list[Divisor]) -> str:
    """Name what explains every D, a key of DENOMINATORS; "other" where nothing does."""
    known = [d for d in divisors if d.decides and np.isfinite(d.value).any()]
    for name, explain in DENOMINATORS.items():
        if known and all(_explains(explain(d), d.value) for d in known):
            return name
    return "other"


def _explains(expected: npt.NDArray[np.float64], value: npt.NDArray[np.float64]) -> bool:
    """Whether the D of every row with a kept token is the expected one."""
    some = np.isfinite(value)
    return bool(np.allclose(value[some], expected[some], rtol=WEIGHT_TOLERANCE, atol=0))


def _all(count: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The sum over all rows, for each row."""
    return np.full(count.shape, count.sum(), dtype=np.float64)


def _each(count: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The row's own count times the number of rows with one."""
    return (count * np.count_nonzero(count)).astype(np.float64)


DENOMINATORS: dict[str, Callable[[Divisor], npt.NDArray[np.float64]]] = {
    "valid tokens": lambda d: _all(d.valid),
    "kept tokens": lambda d: _all(d.kept),
    "valid tokens of each row": lambda d: _each(d.valid),
    "kept tokens of each row": lambda d: _each(d.kept),
    "rows": lambda d: np.full(d.valid.shape, np.count_nonzero(d.valid), dtype=np.float64),
    "nothing": lambda d: np.ones(d.valid.shape),
}
"""Name -> D of each row: token mean, mean of row means, mean of row sums, sum."""


def misdivided(variant: Variant, denominator: str, found: Divisor) -> tuple[str, str] | None:
    """What the variant does and what the function does, where its gradient shows a difference.

    Averaging otherwise (by rows, or not at all) is no difference; counting other tokens is.

    Args:
        variant: whose masks the function has.
        denominator: what explains every D.
        found: D on one batch.
    """
    if not found.uniform:
        return "weighs each kept token by r A", "by something else"
    right, wrong = ("kept", "valid") if variant.counts_kept else ("valid", "kept")
    differ = found.valid.sum() != found.kept.sum()
    if not denominator.startswith(wrong) or not differ or not np.isfinite(found.value).any():
        return None
    counts = {"valid": int(found.valid.sum()), "kept": int(found.kept.sum())}
    said = (f"divides by its {counts[which]} {which} tokens" for which in (right, wrong))
    return next(said), next(said)
