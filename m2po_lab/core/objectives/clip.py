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


PPO_SOURCE = "Schulman et al. 2017 (arXiv 1707.06347), section 6.1"
EPS_LOW = Parameter(default=0.2, source=PPO_SOURCE, meaning="lower bound is 1 - eps_low", high=1.0)
EPS_HIGH = Parameter(default=0.2, source=PPO_SOURCE, meaning="upper bound is 1 + eps_high")
EPS = MappingProxyType({"eps_low": EPS_LOW, "eps_high": EPS_HIGH})
"""The two bounds of PPO's clip, which many objectives take over."""

DUAL_CLIP_C = Parameter(
    default=3.0,
    source="Ye et al. 2020 (arXiv 1912.09729), section 5; verl clip_ratio_c",
    meaning="largest ratio of a token with A < 0 that keeps its gradient",
    low=1.0,
)
DELTA = Parameter(
    default=4.0,
    source="INTELLECT-2 (arXiv 2505.07291), section 3.4",
    meaning="largest ratio of a token with A < 0 that keeps its gradient",
    low=1.0,
)
DAPO_EPS_HIGH = Parameter(
    default=0.28, source="DAPO (arXiv 2503.14476), section 4.1", meaning="upper bound 1 + eps_high"
)


def check_delta(params: Params) -> None:
    """Raise ValueError where delta would cut into PPO's own clip range."""
    if params["delta"] <= 1 + params["eps_high"]:
        raise ValueError(
            f"two_sided: delta={params['delta']} must be above 1 + eps_high ="
            f" {1 + params['eps_high']:g}; below it the two rules contradict each other"
        )


PPO_FORMULA = "loss = -min(r A, clip(r, 1-eps_low, 1+eps_high) A); w = r where not clipped"

CLIP = MappingProxyType(
    {
        "ppo": Spec(
            summary=(
                "PPO's clip, as in GRPO: a token whose ratio has moved past 1 + eps_high with A"
                " > 0, or below 1 - eps_low with A < 0, has no gradient. The bound does not know"
                " how stale the data is, so on old rollouts it drops the rare, high-entropy"
                " tokens that teach most. GRPO averages within a row first: aggregation"
                " sequence_mean_token_mean."
            ),
            formula=PPO_FORMULA,
            keep=keep_clip,
            weight=ratio_weight,
            loss=clip_loss,
            parameters=EPS,
            paper="Schulman et al. 2017 (arXiv 1707.06347); GRPO: Shao et al. 2024 (2402.03300)",
            link="https://arxiv.org/abs/1707.06347",
        ),
        "dual_clip": Spec(
            summary=(
                "PPO with an upper bound for tokens with A < 0: where the ratio exceeds c the"
                " token has no gradient, because r |A| would grow without limit on a token that"
                " the current policy makes much likelier although it was bad."
            ),
            formula="loss = PPO, for A < 0 at most -c A; w = r where no bound is passed",
            keep=keep_clip,
            weight=ratio_weight,
            loss=clip_loss,
            parameters=MappingProxyType({**EPS, "c": DUAL_CLIP_C}),
            paper="Ye et al. 2020, Mastering complex control in MOBA games (arXiv 1912.09729)",
            link="https://arxiv.org/abs/1912.09729",
        ),
        "two_sided": Spec(
            summary=(
                "INTELLECT-2's two-sided clip, TRL's delta: the dual clip written as a cap on"
                " the ratio. Tokens with A < 0 and a ratio above delta have no gradient."
            ),
            formula="loss = -min(min(r, delta) A, clip(r, 1-eps_low, 1+eps_high) A)",
            keep=keep_clip,
            weight=ratio_weight,
            loss=clip_loss,
            check=check_delta,
            parameters=MappingProxyType({**EPS, "delta": DELTA}),
            paper="Prime Intellect 2025, INTELLECT-2 (arXiv 2505.07291)",
            link="https://arxiv.org/abs/2505.07291",
        ),
        "dapo": Spec(
            summary=(
                "DAPO's clip-higher: PPO whose upper bound is wider than its lower one, so that"
                " unlikely tokens can still gain probability and entropy does not collapse."
            ),
            formula=PPO_FORMULA,
            keep=keep_clip,
            weight=ratio_weight,
            loss=clip_loss,
            parameters=MappingProxyType({**EPS, "eps_high": DAPO_EPS_HIGH}),
            paper="Yu et al. 2025, DAPO (arXiv 2503.14476)",
            link="https://arxiv.org/abs/2503.14476",
        ),
        "dr_grpo": Spec(
            summary=(
                "Dr.GRPO: PPO's clip with the biases of GRPO's averages removed: advantages are"
                " R - mean without the division by the group's standard deviation (the caller's"
                " part), and every token is divided by rows * max_length, a constant, so that"
                " long wrong answers are not punished less."
            ),
            formula=PPO_FORMULA,
            keep=keep_clip,
            weight=ratio_weight,
            loss=clip_loss,
            parameters=EPS,
            denominator="B * max_length with aggregation 'constant', the paper's; else N",
            aggregation="constant",
            paper="Liu et al. 2025, Understanding R1-Zero-like training (arXiv 2503.20783)",
            link="https://arxiv.org/abs/2503.20783",
        ),
    }
)
