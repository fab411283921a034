"""Verdicts -> the report's objectives and overlap."""

from typing import Any

import numpy as np

from m2po_lab.analysis.bins import PROBABILITY_EDGES, Bools, Floats, Ints, probability_bin
from m2po_lab.analysis.facts_report import ratio
from m2po_lab.analysis.finish import finite
from m2po_lab.analysis.whatif import Stage, Verdict, WhatIf
from m2po_lab.core.objectives.base import RATIO_LIMIT

ENTROPY_EDGES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
"""Lower edges in nats; the last bin is open."""
Report = dict[str, Any]


def objective_report(verdict: Verdict) -> Report:
    """Return one entry of "objectives".

    - zero_gradient_fraction: tokens with A != 0 whose gradient is dropped (binding) over all
      tokens; binding_fraction_positive and _negative are its two parts by the sign of A. Without
      advantages every dropped token counts and the parts are null.
    - weight_mean, weight_ess_fraction: mean of w and (sum w)^2 / (n sum w^2) over tokens with
      A != 0, dropped ones as 0; null without any. Where A is 0 its weight multiplies nothing, and
      objectives differ in whether they keep such tokens. Without advantages over all tokens.
    - mass_kept: sum |w A| / sum |r A|, gradient mass against the unclipped estimator's; in [0, 1]
      for objectives that only drop tokens, above 1 for those that raise weights.
    - variance_ratio: variance of w A over tokens against that of r A.
    - tokens: how many tokens this is about; exact: they are all of the log.
    - lost_by_probability, lost_by_entropy: the fraction dropped in each bin.
    """
    stage = verdict.stage
    n, advantage = stage.d.size, stage.advantage
    dropped = _dropped(verdict)
    weight = verdict.weight if advantage is None else verdict.weight[advantage != 0]
    total = float(weight.sum())
    with np.errstate(over="ignore", invalid="ignore"):
        ess = ratio(total * total, weight.size * float((weight * weight).sum()))
    return {
        "ratio": stage.ratio,
        "params": {k: v for k, v in verdict.objective.params.items() if v is not None},
        "scope": verdict.objective.scope,
        "tokens": n,
        "exact": stage.complete,
        "zero_gradient_fraction": ratio(int(dropped.sum()), n),
        "binding_fraction_positive": _signed(dropped, advantage, 1, n),
        "binding_fraction_negative": _signed(dropped, advantage, -1, n),
        "weight_mean": finite(ratio(total, weight.size)),
        "weight_ess_fraction": finite(min(ess, 1.0) if ess is not None else None),
        **_mass(stage, verdict.weight),
        "lost_by_probability": _lost_by_probability(stage, dropped),
        "lost_by_entropy": _lost_by_entropy(stage, dropped),
    }


def _dropped(verdict: Verdict) -> Bools:
    advantage = verdict.stage.advantage
    return ~verdict.keep if advantage is None else ~verdict.keep & (advantage != 0)


def _signed(dropped: Bools, advantage: Floats | None, sign: int, n: int) -> float | None:
    if advantage is None:
        return None
    return ratio(int((dropped & (sign * advantage > 0)).sum()), n)


def _mass(stage: Stage, weight: Floats) -> Report:
    """Gradient mass and variance against the unclipped estimator; null without advantages."""
    if stage.advantage is None:
        return {"mass_kept": None, "variance_ratio": None}
    unclipped = np.exp(np.minimum(stage.d, RATIO_LIMIT))
    size = np.abs(stage.advantage)
    left = float((np.abs(weight) * size).sum())
    variance = float(np.var(unclipped * stage.advantage))
    return {
        "mass_kept": finite(ratio(left, float((unclipped * size).sum()))),
        "variance_ratio": finite(ratio(float(np.var(weight * stage.advantage)), variance)),
    }


def _lost(bins: Ints, dropped: Bools, edges: tuple[float, ...], last: float | None) -> list[Report]:
    n = np.bincount(bins, minlength=len(edges))
    lost = np.bincount(bins[dropped], minlength=len(edges))
    highs = (*edges[1:], last)
    return [
        {"low": low, "high": high, "n": int(n[i]), "fraction": ratio(int(lost[i]), int(n[i]))}
        for i, (low, high) in enumerate(zip(edges, highs, strict=True))
    ]


def _lost_by_probability(stage: Stage, dropped: Bools) -> list[Report] | None:
    logp = stage.chunk.columns.get("behavior_logp")
    if logp is None or not np.isfinite(logp).all():
        return None
    return _lost(probability_bin(logp), dropped, PROBABILITY_EDGES[:-1], PROBABILITY_EDGES[-1])


def _lost_by_entropy(stage: Stage, dropped: Bools) -> list[Report] | None:
    entropy = stage.chunk.columns.get("entropy")
    if entropy is None:
        return None
    known = np.isfinite(entropy)
    if not known.any():
        return None
    bins = np.searchsorted(ENTROPY_EDGES[1:], entropy[known], side="right")
    return _lost(bins, dropped[known], ENTROPY_EDGES, None)


def overlap_report(found: WhatIf) -> Report | None:
    """Return how far the dropped sets of the objectives agree, for those that drop any token.

    Objectives that judged fewer tokens than the others are left out.

    `jaccard[i][j]` is tokens that both drop over tokens that either drops; `dropped[i]` is how many
    objective i drops.
    """
    stage = found.stage
    if stage is None:
        return None
    sets = {name: _dropped(v) for name, v in found.verdicts.items() if v.stage is stage}
    sets = {name: dropped for name, dropped in sets.items() if dropped.any()}
    if not sets:
        return None
    names = list(sets)
    packed = np.packbits(np.stack([sets[name] for name in names]), axis=1)
    counts = [int(np.bitwise_count(row).sum()) for row in packed]
    both = [[int(np.bitwise_count(a & b).sum()) for b in packed] for a in packed]
    jaccard = [
        [both[i][j] / (counts[i] + counts[j] - both[i][j]) for j in range(len(names))]
        for i in range(len(names))
    ]
    return {"objectives": names, "dropped": counts, "jaccard": jaccard}
