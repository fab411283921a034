"""Where the drift comes from: the engines' floor, staleness, or the updates inside the step.

The one rule for it: the report's attribution and the findings on drift read it from here.
"""

from typing import Any

from m2po_lab.analysis.cells import Cells
from m2po_lab.analysis.finish import finite
from m2po_lab.analysis.freshness import freshness
from m2po_lab.analysis.tables import RatioTables
from m2po_lab.core.moments import m2
from m2po_lab.integrity import BatchIntegrity
from m2po_lab.integrity.pairs import EQUAL_SHARE

BETWEEN = ("proximal/behavior", "current/behavior")
"""Ratio whose drift by lag is floor and staleness: the trainer before its step, if logged."""


def proximal_is_copy(integrity: BatchIntegrity, share: float = EQUAL_SHARE) -> bool:
    """Whether the proximal log-probs are the behavior ones bit for bit.

    Then current/proximal is current/behavior under another name and says nothing of the step.
    """
    pair = integrity.pairs.get("proximal/behavior")
    return pair is not None and pair.equal >= share * max(pair.nonzero, 1)


def attribution_report(
    ratios: dict[str, RatioTables], integrity: BatchIntegrity
) -> dict[str, Any] | None:
    """Return the report's "attribution", parts of M2 in nats^2; null without any ratio.

    floor_lag0: M2 of tokens sampled with the trainer's own weights (engine mismatch, precision).
    staleness: what the other lags add, M2 over all known lags minus that floor; negative where
    they are closer; 0 where all lags lie within the updates of one rollout batch.
    in_step: what the updates inside the step moved: M2 of current/proximal, plus what the lags add
    if they all lie within the updates of one rollout batch. separable: lag 0 was seen, so that
    floor and the rest can be told apart.
    """
    if not ratios:
        return None
    is_copy = proximal_is_copy(integrity)
    names = tuple(reversed(BETWEEN)) if is_copy else BETWEEN
    between = next((name for name in names if name in ratios), None)
    floor = staleness = None
    in_step: list[float] = []
    if between is not None:
        lags = ratios[between].cells["lag"]
        floor, whole = _m2(lags, [0]), _m2(lags, lags.sorted_keys())
        staleness = whole - floor if floor is not None and whole is not None else None
        if staleness is not None and len(lags) > 1 and freshness(integrity, between).is_fresh:
            in_step, staleness = [staleness], 0.0
    if "current/proximal" in ratios and not is_copy:
        moved = finite(float(m2(ratios["current/proximal"].set("all").sums)[0]))
        in_step += [] if moved is None else [moved]
    return {
        "ratio": between,
        "floor_lag0": floor,
        "staleness": staleness,
        "in_step": sum(in_step) if in_step else None,
        "separable": floor is not None,
    }


def _m2(cells: Cells, keys: list[int]) -> float | None:
    value: float | None = finite(float(m2(cells.union(keys).sums)[0]))
    return value
