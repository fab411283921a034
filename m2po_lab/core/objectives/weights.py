"""Weights without a gradient, which several families share."""

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Tokens, detach
from m2po_lab.core.objectives.clip import log_bound


def capped(tokens: Tokens, log_weight: Array, cap: float, keep: Array) -> Array:
    """min(e^log_weight, cap) on `keep`, 0 elsewhere."""
    xp = tokens.xp
    over = log_weight > log_bound(cap)
    inside = tokens.exp(log_weight, keep & ~over)
    return xp.where(keep & over, xp.full_like(inside, cap), inside)


def weighted_log_loss(tokens: Tokens, weight: Array, keep: Array) -> Array:
    """-sg(w) A l, the policy gradient with a fixed weight; 0 on dropped tokens."""
    loss = -detach(weight) * tokens.advantage * tokens.current
    return tokens.xp.where(keep, loss, tokens.zero)
