"""M2PO's what-if scope by scope, and the sweeps over clip ranges and budgets."""

import math
from typing import Any

import numpy as np

from m2po_lab.analysis.bins import Floats
from m2po_lab.analysis.facts_report import ratio
from m2po_lab.analysis.finish import finite
from m2po_lab.analysis.options import Options
from m2po_lab.analysis.whatif import Stage, Verdict
from m2po_lab.core.selection import Threshold, solve_threshold

Report = dict[str, Any]


def thresholds(stage: Stage, budget: float) -> list[Threshold]:
    """Solve every scope of a stage for a budget; needs advantages."""
    assert stage.advantage is not None
    return [
        solve_threshold(stage.batch(rows, stage.advantage), budget)
        for rows in stage.cuts("mini-batch")
    ]


def m2po_report(stage: Stage, verdict: Verdict, name: str) -> Report:
    """Return what the second-moment objectives report beside what every objective does.

    masked, active: counts over scopes; masked_fraction: masked over all tokens; m2_before and
    m2_after:
    mean d^2 of the active tokens, and of those that stay; threshold: the smallest |d| above which a
    scope masks, null where none does. masked_low and masked_high bracket what is exact here.
    """
    d, advantage = stage.d, stage.advantage
    square = d * d
    masked_tokens = ~verdict.keep
    result: Report = {"scope": stage.scope}
    if advantage is not None:
        active = ((advantage > 0) & (d > 0)) | ((advantage < 0) & (d < 0))
        left = active & verdict.keep
        result |= {
            "active": int(active.sum()),
            "m2_before": _mean(square[active]),
            "m2_after": _mean(square[left]),
        }
        if name != "m2po_areal":
            masked_tokens = masked_tokens & (advantage != 0)
    masked = int(masked_tokens.sum())
    return result | {
        "masked": masked,
        "masked_fraction": ratio(masked, d.size),
        "threshold": _threshold(stage, masked_tokens),
        "masked_low": masked,
        "masked_high": masked,
    }


def _mean(values: Floats) -> float | None:
    return finite(math.fsum(values) / values.size) if values.size else None


def _threshold(stage: Stage, masked: Any) -> float | None:
    """Smallest |d| of a masked token."""
    return float(np.abs(stage.d[masked]).min()) if masked.any() else None


def clip_sweep(stage: Stage, options: Options) -> list[Report] | None:
    """Fraction of tokens that a clip range eps (both sides) leaves without a gradient."""
    if stage.advantage is None:
        return None
    up, down = stage.d[stage.advantage > 0], stage.d[stage.advantage < 0]
    return [
        {"eps": eps, "fraction": ratio(_clipped(up, down, eps), stage.d.size)}
        for eps in options.eps_grid
    ]


def _clipped(up: Floats, down: Floats, eps: float) -> int:
    """Tokens past their bound: d > log(1 + eps) with A > 0, d < log(1 - eps) with A < 0."""
    low = math.log(1 - eps) if eps < 1 else -math.inf
    return int((up > math.log(1 + eps)).sum()) + int((down < low).sum())


def budget_sweep(stage: Stage, options: Options) -> list[Report] | None:
    """Fraction of tokens that M2PO masks at each budget, within the scopes of the log."""
    if stage.advantage is None:
        return None
    result = []
    for budget in options.budget_grid:
        masked = sum(threshold.masked for threshold in thresholds(stage, budget))
        result.append({"budget": budget, "masked_fraction": ratio(masked, stage.d.size)})
    return result
