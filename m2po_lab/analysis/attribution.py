"""Where the drift comes from: the engines' floor, staleness, or the updates inside the step."""

from typing import Any

from m2po_lab.analysis.cells import Cells
from m2po_lab.analysis.finish import finite
from m2po_lab.analysis.tables import RatioTables
from m2po_lab.core.moments import m2

BETWEEN = ("proximal/behavior", "current/behavior")
"""Ratio whose drift by lag is floor and staleness: the trainer before its step, if logged."""


def attribution_report(ratios: dict[str, RatioTables]) -> dict[str, Any] | None:
    """Return the report's "attribution", parts of M2 in nats^2; null without any ratio.

    floor_lag0: M2 of tokens sampled with the trainer's own weights (engine mismatch, precision).
    staleness: what the other lags add, M2 over all known lags minus that floor; negative where
    they are closer. in_step: M2 of current/proximal, what the updates since the last recomputation
    moved. separable: lag 0 was seen, so that floor and staleness can be told apart.
    """
    if not ratios:
        return None
    between = next((name for name in BETWEEN if name in ratios), None)
    floor = staleness = None
    if between is not None:
        lags = ratios[between].cells["lag"]
        floor = _m2(lags, [0])
        whole = _m2(lags, lags.sorted_keys())
        staleness = whole - floor if floor is not None and whole is not None else None
    in_step = ratios.get("current/proximal")
    return {
        "ratio": between,
        "floor_lag0": floor,
        "staleness": staleness,
        "in_step": None if in_step is None else finite(float(m2(in_step.set("all").sums)[0])),
        "separable": floor is not None,
    }


def _m2(cells: Cells, keys: list[int]) -> float | None:
    value: float | None = finite(float(m2(cells.union(keys).sums)[0]))
    return value
