"""Clipped surrogates: PPO and those that only move its bounds.

All of them drop the gradient of a token whose ratio has moved past a bound in the direction its
advantage pushes, and give it the constant loss -bound * A. They differ in three numbers: the bound
for A > 0 (1 + eps_high), the lower bound for A < 0 (1 - eps_low), and an upper bound for A < 0 (c).
Bounds are compared as log-ratios, so that the mask is the same on every array library, and a token
exactly at a bound keeps its full gradient.
"""

import math
from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Params, Spec, Tokens
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import ratio_weight


def log_bound(bound: float) -> float:
    """Log of a ratio bound; -inf for 0 and below, where nothing can be under it."""
    return math.log(bound) if bound > 0 else -math.inf


def beyond_clip(tokens: Tokens, d: Array, low: float, high: float, top: float) -> Array:
    """Tokens past their bound: A>0 and d > log high; A<0 and (d < log low or d > log top)."""
    adv = tokens.advantage
    too_high = (adv > 0) & (d > log_bound(high))
    return too_high | ((adv < 0) & ((d < log_bound(low)) | (d > log_bound(top))))


def clipped_loss(
    tokens: Tokens, keep: Array, d: Array, low: float, high: float, top: float
) -> Array:
    """-e^d A where kept, the constant -bound A where dropped, without exp of a dropped token."""
    xp, adv = tokens.xp, tokens.advantage
    negative = xp.where(d > 0, top, xp.full_like(adv, low)) if math.isfinite(top) else low
    bound = xp.where(adv > 0, xp.full_like(adv, high), negative)
    return -xp.where(keep, tokens.exp(d, keep), bound) * adv


def ppo_bounds(params: Params) -> tuple[float, float, float]:
    """(1 - eps_low, 1 + eps_high, c) with c infinite where the objective has none."""
    top = params.get("c", params.get("delta", math.inf))
    return 1 - params["eps_low"], 1 + params["eps_high"], top


def keep_clip(tokens: Tokens, params: Params) -> Array:
    """Tokens within their clip bound."""
    return ~beyond_clip(tokens, tokens.log_ratio, *ppo_bounds(params))


def clip_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-min(r A, clip(r) A), with max(., -c A) for A<0 where there is a c."""
    return clipped_loss(tokens, keep, tokens.log_ratio, *ppo_bounds(params))


EPS_LOW = Parameter(
    default=0.2,
    source="Schulman et al. 2017, section 6.1",
    meaning="lower bound 1 - eps_low",
    high=1.0,
)
EPS_HIGH = Parameter(
    default=0.2, source="Schulman et al. 2017, section 6.1", meaning="upper bound 1 + eps_high"
)

CLIP = MappingProxyType(
    {
        "ppo": Spec(
            summary=(
                "PPO's clip, as in GRPO: a token whose ratio has moved past 1 + eps_high with A > 0,"
                " or below 1 - eps_low with A < 0, has no gradient. The bound does not know how stale"
                " the data is, so on old rollouts it drops the rare, high-entropy tokens that teach"
                " most. GRPO averages within a row first: aggregation sequence_mean_token_mean."
            ),
            formula="loss = -min(r A, clip(r, 1-eps_low, 1+eps_high) A); w = r where not clipped",
            keep=keep_clip,
            weight=ratio_weight,
            loss=clip_loss,
            parameters=MappingProxyType({"eps_low": EPS_LOW, "eps_high": EPS_HIGH}),
            paper="Schulman et al. 2017 (arXiv 1707.06347); GRPO: Shao et al. 2024 (2402.03300)",
            link="https://arxiv.org/abs/1707.06347",
        ),
    }
)
