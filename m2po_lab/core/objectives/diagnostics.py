"""What every objective's loss reports beside the number: 0-d arrays, explained in DIAGNOSTICS."""

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Tokens

DIAGNOSTICS = {
    "tokens": "valid tokens; count",
    "active": "trust-region tokens, (A>0, d>0) or (A<0, d<0), d = log(current/behavior); count",
    "masked": "binding: valid tokens with A != 0 whose gradient was dropped; count",
    "masked_fraction": "masked / tokens, in [0, 1]",
    "zero_gradient_fraction": "the same number under the report's name",
    "binding_fraction_positive": "masked tokens with A > 0 / tokens, in [0, 1]",
    "binding_fraction_negative": "masked tokens with A < 0 / tokens, in [0, 1]",
    "m2_before": "mean d^2 of the active tokens, nats^2",
    "m2_after": "mean d^2 of the active tokens that keep a gradient, nats^2",
    "weight_mean": "mean w over valid tokens with A != 0, dropped ones as 0",
    "weight_ess_fraction": "(sum w)^2 / (n sum w^2) over the same n tokens; in [0, 1]",
    "mass_kept": "sum |w A| / sum |r A|: gradient mass against no trust region, at least 0",
}
"""Name -> meaning and unit. NaN where there is nothing to average or no behavior log-prob."""


def diagnose(tokens: Tokens, keep: Array, weight: Array) -> dict[str, Array]:
    """Return the diagnostics that every objective has.

    Weights are those of A, so they are averaged where A is not 0: elsewhere a weight multiplies
    nothing, and objectives differ in whether they keep such tokens.

    Args:
        tokens: a view without gradient.
        keep: tokens with a gradient.
        weight: w, 0 where dropped.
    """
    xp, valid, adv = tokens.xp, tokens.valid, tokens.advantage
    dropped = valid & ~keep & (adv != 0)
    teaching = valid & (adv != 0)
    taught, n = _count(tokens, teaching), _count(tokens, valid)
    of_advantage = xp.where(teaching, weight, tokens.zero)
    masked = _share(tokens, dropped, n)
    out = {
        "tokens": n,
        "masked": _count(tokens, dropped),
        "masked_fraction": masked,
        "zero_gradient_fraction": masked,
        "binding_fraction_positive": _share(tokens, dropped & (adv > 0), n),
        "binding_fraction_negative": _share(tokens, dropped & (adv < 0), n),
        "weight_mean": _ratio(tokens, xp.sum(of_advantage), taught),
        "weight_ess_fraction": _ess_fraction(tokens, of_advantage, taught),
    }
    return out | _drift(tokens, keep, weight)


def _drift(tokens: Tokens, keep: Array, weight: Array) -> dict[str, Array]:
    """Diagnostics that need current and behavior log-probs; NaN without them."""
    xp, adv = tokens.xp, tokens.advantage
    nan = xp.full_like(tokens.zero, float("nan"))
    if "current/behavior" not in tokens.batch.available_ratios():
        return {"active": nan, "m2_before": nan, "m2_after": nan, "mass_kept": nan}
    d = tokens.log_ratio
    active = tokens.valid & (((adv > 0) & (d > 0)) | ((adv < 0) & (d < 0)))
    left = active & keep
    mass = xp.sum(xp.abs(weight * adv))
    return {
        "active": _count(tokens, active),
        "m2_before": _mean_square(tokens, d, active),
        "m2_after": _mean_square(tokens, d, left),
        "mass_kept": _ratio(tokens, mass, xp.sum(xp.abs(tokens.exp(d, tokens.valid) * adv))),
    }


def _count(tokens: Tokens, mask: Array) -> Array:
    return tokens.xp.sum(tokens.xp.astype(mask, tokens.xp.int64))


def _share(tokens: Tokens, mask: Array, n: Array) -> Array:
    return _ratio(tokens, tokens.xp.astype(_count(tokens, mask), tokens.xp.float64), n)


def _ratio(tokens: Tokens, top: Array, bottom: Array) -> Array:
    """Divide, NaN where the bottom is 0."""
    xp = tokens.xp
    bottom = xp.astype(bottom, xp.float64)
    nan = xp.full_like(bottom, float("nan"))
    return xp.where(bottom > 0, top / xp.where(bottom > 0, bottom, xp.ones_like(bottom)), nan)


def _mean_square(tokens: Tokens, d: Array, mask: Array) -> Array:
    xp = tokens.xp
    return _ratio(tokens, xp.sum(xp.where(mask, d * d, tokens.zero)), _count(tokens, mask))


def _ess_fraction(tokens: Tokens, weight: Array, n: Array) -> Array:
    """(sum w)^2 / (n sum w^2)."""
    xp = tokens.xp
    square = xp.sum(weight) ** 2
    return _ratio(tokens, square, xp.astype(n, xp.float64) * xp.sum(weight * weight))
