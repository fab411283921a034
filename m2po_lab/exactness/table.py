"""All objectives side by side on the same stale data."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from m2po_lab.core.objectives import OBJECTIVES, objective
from m2po_lab.exactness.estimator import estimator_moments
from m2po_lab.exactness.staleness import Step

UNBIASED = 1e-9


@dataclass(frozen=True)
class Row:
    """One objective at one lag.

    Attributes:
        objective: its name.
        scope: its scope.
        lag: updates between sampler and trained policy.
        rows: B of the enumeration.
        relative_bias: |E g - target| / |target|.
        cosine: of the angle between E g and the target.
        relative_deviation: standard deviation of one row over |target|.
        refused: why the objective gave no gradient; empty if it did (then the numbers are NaN).
    """

    objective: str
    scope: str
    lag: int
    rows: int
    relative_bias: float
    cosine: float
    relative_deviation: float
    refused: str = ""


def compare(
    steps: Iterable[Step],
    names: Iterable[str] = tuple(OBJECTIVES),
    rows: int = 2,
    **params: dict[str, Any],
) -> list[Row]:
    """Rows for all objectives and steps, in that order; defaults, aggregation sequence_sum.

    Args:
        steps: of `stale_steps`.
        names: objectives.
        rows: B for those of mini-batch scope.
        params: objective name -> parameters other than its defaults.
    """
    steps = list(steps)
    return [_row(name, step, rows, params.get(name, {})) for name in names for step in steps]


def _row(name: str, step: Step, rows: int, params: dict[str, Any]) -> Row:
    chosen = objective(name, "sequence_sum", **params)
    try:
        moments = estimator_moments(chosen, step, rows)
    except ValueError as error:
        nan = float("nan")
        return Row(name, chosen.scope, step.lag, rows, nan, nan, nan, refused=str(error))
    return Row(
        objective=name,
        scope=chosen.scope,
        lag=step.lag,
        rows=moments.rows,
        relative_bias=moments.relative_bias(step.target),
        cosine=moments.cosine(step.target),
        relative_deviation=moments.relative_deviation(step.target),
    )


def unbiased_lags(rows: Iterable[Row]) -> dict[str, int]:
    """Objective -> largest lag up to which it is unbiased; -1 where it never is."""
    largest: dict[str, int] = {}
    for row in sorted(rows, key=lambda r: (r.objective, r.lag)):
        reached = largest.setdefault(row.objective, -1)
        if row.relative_bias < UNBIASED and reached == row.lag - 1:
            largest[row.objective] = row.lag
    return largest
