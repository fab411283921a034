"""Metric files: how each number of a trainer moved over the steps of a run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from m2po_lab.analysis.bins import Floats
from m2po_lab.analysis.finish import finite
from m2po_lab.logs.metrics import MetricSeries

MOST_POINTS = 200
"""More steps are thinned evenly in `points`; first and last stay."""
FEWEST_POINTS = 3
"""A series with fewer finite values has no trend."""
STEP_OFFSET = {"trl-metrics": 1}
"""Framework -> its logged step minus the trainer version of the tokens of that step."""


def merged(series: Sequence[MetricSeries]) -> list[MetricSeries]:
    """Return one series a framework, metric and file, in this order, each by ascending step."""
    found: dict[tuple[str, str, str], MetricSeries] = {}
    for one in series:
        key = (one.framework, one.name, one.source)
        found[key] = found[key].followed_by(one) if key in found else one
    return [_in_order(found[key]) for key in sorted(found)]


def _in_order(series: MetricSeries) -> MetricSeries:
    order = np.argsort(series.step, kind="stable")
    return replace(series, step=series.step[order], value=series.value[order])


def trends_report(
    series: Sequence[MetricSeries], token_steps: Sequence[int]
) -> list[dict[str, Any]] | None:
    """Return one entry a metric; null without metric files.

    trend: Spearman's rank correlation of the value with the step, in [-1, 1]; null if constant or
    short. non_finite: values that are null, NaN or infinite. step_offset: what to take off the
    metric's step to get the step of the token log; shared_steps: how many steps both have.
    """
    steps = np.asarray(sorted(token_steps), dtype=np.int64)
    return [_entry(one, steps) for one in merged(series)] or None


def _entry(series: MetricSeries, token_steps: Any) -> dict[str, Any]:
    step, value = series.step, np.asarray(series.value, dtype=np.float64)
    known = np.isfinite(value)
    good, offset = value[known], STEP_OFFSET.get(series.framework, 0)
    shown = np.unique(np.linspace(0, step.size - 1, min(step.size, MOST_POINTS)).astype(np.int64))
    return {
        "name": series.name,
        "framework": series.framework,
        "source": series.source,
        "n": int(step.size),
        "first_step": int(step[0]),
        "last_step": int(step[-1]),
        "first": float(good[0]) if good.size else None,
        "last": float(good[-1]) if good.size else None,
        "mean": float(good.mean()) if good.size else None,
        "low": float(good.min()) if good.size else None,
        "high": float(good.max()) if good.size else None,
        "trend": trend(step[known].astype(np.float64), good),
        "non_finite": int((~known).sum()),
        "step_offset": offset,
        "shared_steps": int(np.isin(np.unique(step) - offset, token_steps).sum()),
        "points": [[int(step[i]), finite(float(value[i]))] for i in shown],
    }


def trend(step: Floats, value: Floats) -> float | None:
    """Spearman's rank correlation, ties at their mean rank; null if constant or too short."""
    if value.size < FEWEST_POINTS or np.ptp(value) == 0 or np.ptp(step) == 0:
        return None
    return float(np.corrcoef(_ranks(step), _ranks(value))[0, 1])


def _ranks(values: Floats) -> Floats:
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[index.reshape(-1)], dtype=np.float64)
