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


def clipped(tokens: Tokens, log_weight: Array, low: float, high: float, keep: Array) -> Array:
    """clip(e^log_weight, low, high) on `keep`, 0 elsewhere."""
    xp = tokens.xp
    above, below = log_weight > log_bound(high), log_weight < log_bound(low)
    inside = tokens.exp(log_weight, keep & ~above & ~below)
    bound = xp.where(above, xp.full_like(inside, high), xp.full_like(inside, low))
    return xp.where(keep, xp.where(above | below, bound, inside), tokens.zero)


def weighted_log_loss(tokens: Tokens, weight: Array, keep: Array) -> Array:
    """-sg(w) A l, the policy gradient with a fixed weight; 0 on dropped tokens."""
    loss = -detach(weight) * tokens.advantage * tokens.current
    return tokens.xp.where(keep, loss, tokens.zero)
