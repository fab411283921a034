"""M2PO's what-if scope by scope, and the sweeps over clip ranges and budgets."""

import math
from typing import Any

import numpy as np

from m2po_lab.analysis import active
from m2po_lab.analysis.bins import Floats
from m2po_lab.analysis.facts_report import ratio
from m2po_lab.analysis.finish import finite
from m2po_lab.analysis.keyed import Keyed
from m2po_lab.analysis.options import Options
from m2po_lab.analysis.whatif import Stage, Verdict

Report = dict[str, Any]


def m2po_report(verdict: Verdict, name: str) -> Report:
    """Return what the second-moment objectives report beside what every objective does.

    masked, active: counts over scopes; masked_fraction: masked over all tokens; m2_before and
    m2_after: mean d^2 of the active tokens, and of those that stay; threshold: the smallest |d|
    that is masked, null where none is. masked_low and masked_high bracket what is exact here.
    """
    stage = verdict.stage
    d, advantage = stage.d, stage.advantage
    gone = ~verdict.keep
    result: Report = {"scope": stage.scope}
    if advantage is not None:
        region = active.is_active(d, advantage)
        left = region & verdict.keep
        result |= {
            "active": int(region.sum()),
            "m2_before": _mean(d[region] ** 2),
            "m2_after": _mean(d[left] ** 2),
        }
        if name != "m2po_areal":
            gone = gone & (advantage != 0)
    masked = int(gone.sum())
    return result | {
        "masked": masked,
        "masked_fraction": ratio(masked, d.size),
        "threshold": float(np.abs(d[gone]).min()) if masked else None,
        "masked_low": masked,
        "masked_high": masked,
    }


def _mean(values: Floats) -> float | None:
    """Mean, with the sum rounded once; null for nothing."""
    return finite(math.fsum(values) / values.size) if values.size else None


def m2po_from_histograms(scopes: Keyed, budget: float) -> Report:
    """Return the same for M2PO from the histograms of all scopes, for logs beyond the sample.

    `masked` takes the tokens of a scope's boundary bin (3 % wide in |d|) to be alike; masked_low
    and masked_high hold for any tokens in it. threshold is the lower edge of the lowest such bin.
    """
    found = active.masked(scopes, budget)
    n, total = int(scopes.field("n").sum()), int(scopes.field("active").sum())
    masked, square = int(found.estimate.sum()), float(scopes.field("square").sum())
    return {
        "active": total,
        "m2_before": ratio(square, total),
        "m2_after": ratio(float(found.square.sum()), total - masked),
        "masked": masked,
        "masked_fraction": ratio(masked, n),
        "threshold": finite(float(found.threshold.min(initial=np.inf))),
        "masked_low": int(found.low.sum()),
        "masked_high": int(found.high.sum()),
    }


def clip_sweep(d: Floats, advantage: Floats, count: Floats, options: Options) -> list[Report]:
    """Fraction of tokens that a clip range eps (both sides) leaves without a gradient.

    Args:
        d: log-ratios.
        advantage: of each; only its sign matters.
        count: how many tokens have it.
        options: which eps.
    """
    n = float(count.sum())
    return [
        {
            "eps": eps,
            "fraction": ratio(float(count[active.clipped(d, advantage, eps, eps)].sum()), n),
        }
        for eps in options.eps_grid
    ]


def budget_sweep(stage: Stage, options: Options) -> list[Report]:
    """Fraction of tokens that M2PO masks at each budget, within the scopes of the log."""
    assert stage.advantage is not None
    region = active.is_active(stage.d, stage.advantage)
    masked = dict.fromkeys(options.budget_grid, 0)
    row = stage.chunk.row
    for rows in stage.cuts("mini-batch"):
        first, last = np.searchsorted(row, (rows.start, rows.stop))
        d = stage.d[first:last][region[first:last]]
        square = np.sort(d * d)
        for budget in masked:
            masked[budget] += square.size - fitting(square, budget)
    return [
        {"budget": budget, "masked_fraction": ratio(count, stage.d.size)}
        for budget, count in masked.items()
    ]


def fitting(square: Floats, budget: float) -> int:
    """Return how many of the smallest squares have a mean within the budget (Algorithm 1).

    Args:
        square: d^2 of the active tokens of one scope, ascending.
        budget: in nats^2.
    """
    n = np.arange(1, square.size + 1)
    fits = np.flatnonzero(np.cumsum(square) / n <= budget * (1 + 1e-9))
    kept = int(fits[-1]) + 1 if fits.size else 0
    while kept and math.fsum(square[:kept]) / kept > budget:
        kept -= 1
    return kept


def budget_sweep_from_histograms(scopes: Keyed, options: Options) -> list[Report]:
    """Return the same from the histograms of all scopes, for logs beyond the sample."""
    n = int(scopes.field("n").sum())
    return [
        {
            "budget": budget,
            "masked_fraction": ratio(int(active.masked(scopes, budget).estimate.sum()), n),
        }
        for budget in options.budget_grid
    ]
