"""Token-scope objectives from the histogram: all tokens, each at the middle of its bin."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from m2po_lab.analysis.bins import FINE, UNKNOWN_ADVANTAGE, Floats, representative
from m2po_lab.analysis.facts_report import ratio
from m2po_lab.analysis.finish import finite
from m2po_lab.analysis.tables import RatioTables
from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import Objective

SIGN = (1.0, 1.0, -1.0, -1.0, 0.0)
"""Sign of the advantage in each quadrant."""
COLUMNS = {"current_logp", "behavior_logp", "advantage"}


@dataclass(frozen=True, eq=False)
class Binned:
    """Log-ratios of all tokens with a known advantage, up to half a bin (.4 %).

    Attributes:
        d: middle of each bin that holds a token.
        advantage: its sign.
        count: how many tokens it holds.
    """

    d: Floats
    advantage: Floats
    count: Floats


def binned(tables: RatioTables) -> Binned:
    """Read the tokens out of the quadrant histograms of a ratio."""
    middle = representative(FINE)
    value = np.concatenate((-middle[:0:-1], middle))
    cells = tables.cells["quadrant"].take([q for q in range(len(SIGN)) if q != UNKNOWN_ADVANTAGE])
    quadrant, code = np.nonzero(cells.field("bins"))
    count = cells.field("bins")[quadrant, code].astype(np.float64)
    return Binned(value[code], np.asarray(SIGN)[quadrant], count)


def applies(rule: Objective) -> bool:
    """Whether the rule looks at nothing but the token's log-ratio and the sign of its advantage."""
    spec = rule.spec
    proximal = bool(rule.params.get("proximal")) or spec.ratio != "current/behavior"
    plain = spec.scope == "token" and spec.penalty is None and set(rule.needs) <= COLUMNS
    return plain and not proximal


def binned_report(tokens: Binned, rule: Objective) -> dict[str, Any]:
    """Return the fractions and weights of an objective over all tokens of the log."""
    batch = TokenBatch(
        behavior_logp=np.zeros_like(tokens.d),
        current_logp=tokens.d,
        advantage=tokens.advantage,
        lengths=np.ones(tokens.d.shape, dtype=np.int64),
    )
    count, n = tokens.count, float(tokens.count.sum())
    dropped = ~np.asarray(rule.keep(batch)) & (tokens.advantage != 0)
    weight = np.asarray(rule.weight(batch), dtype=np.float64)
    some = np.where(tokens.advantage != 0, count, 0.0)
    total, square = float((some * weight).sum()), float((some * weight * weight).sum())
    ess = ratio(total * total, float(some.sum()) * square)
    return {
        "zero_gradient_fraction": ratio(float(count[dropped].sum()), n),
        "binding_fraction_positive": ratio(float(count[dropped & (tokens.advantage > 0)].sum()), n),
        "binding_fraction_negative": ratio(float(count[dropped & (tokens.advantage < 0)].sum()), n),
        "weight_mean": finite(ratio(total, float(some.sum()))),
        "weight_ess_fraction": finite(None if ess is None else min(ess, 1.0)),
    }
