"""Objectives whose novelty is which data they train on; what remains for a token is a clip."""

import math
from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Params, Spec, Tokens, detach
from m2po_lab.core.objectives.clip import EPS_HIGH, EPS_LOW, clip_loss, keep_clip, log_bound
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import ratio_weight
from m2po_lab.core.objectives.tokens import RATIO_LIMIT

REMIX_PAPER = "Liang et al. 2025 (arXiv 2507.06892)"


def _log_bounds(tokens: Tokens, params: Params) -> tuple[Array, Array]:
    """Log of (b - eps_low, b + eps_high) of each token, b = proximal/behavior; -inf for none."""
    xp, log_b = tokens.xp, detach(tokens.ratio("proximal/behavior"))
    log_low, log_high = (xp.full_like(log_b, log_bound(params[e])) for e in ("eps_low", "eps_high"))
    bounded = log_b > log_low
    gap = xp.where(bounded, log_low - log_b, -xp.ones_like(log_b))
    low = xp.where(bounded, log_b + xp.log1p(-xp.exp(gap)), xp.full_like(log_b, -math.inf))
    return low, xp.logaddexp(log_b, log_high)


def _keep(tokens: Tokens, params: Params) -> Array:
    """Not (A>0, r > b + eps_high) and not (A<0, r < b - eps_low); with center 'one' PPO's clip."""
    if params["center"] == "one":
        return keep_clip(tokens, params)
    d, adv = detach(tokens.log_ratio), tokens.advantage
    low, high = _log_bounds(tokens, params)
    return ~(((adv > 0) & (d > high)) | ((adv < 0) & (d < low)))


def _surrogate(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-r A where kept, -bound A where dropped."""
    if params["center"] == "one":
        return clip_loss(tokens, params, keep)
    center = tokens.exp(detach(tokens.ratio("proximal/behavior")), tokens.valid)
    up, down = center + params["eps_high"], center - params["eps_low"]
    bound = tokens.xp.where(tokens.advantage > 0, up, down)
    ratio = tokens.xp.where(keep, tokens.exp(tokens.log_ratio, keep), bound)
    return -ratio * tokens.advantage


def _back(tokens: Tokens) -> Array:
    """Log of proximal over current, at most RATIO_LIMIT."""
    return tokens.xp.clip(-tokens.ratio("current/proximal"), -math.inf, RATIO_LIMIT)


def _penalty(tokens: Tokens, params: Params, keep: Array) -> Array:
    """kl_coef (1/rho - 1): the gradient of -kl_coef (1/rho - 1 + log rho)."""
    if not params["kl_coef"]:
        return tokens.xp.zeros_like(tokens.advantage)
    return params["kl_coef"] * tokens.xp.expm1(_back(tokens))


def _loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """The clipped surrogate, plus kl_coef (1/rho - 1 + log rho)."""
    surrogate = _surrogate(tokens, params, keep)
    if not params["kl_coef"]:
        return surrogate
    back = _back(tokens)
    return surrogate + params["kl_coef"] * (tokens.xp.expm1(back) - back)


def _needs(params: Params) -> tuple[str, ...]:
    used = params["kl_coef"] or params["center"] == "proximal"
    return ("proximal_logp",) if used else ()


DATA_MIXING = MappingProxyType(
    {
        "remix": Spec(
            summary=(
                "Reincarnating mix-policy gradient: mini-batches of about 40 % old responses (from"
                " the last two policies) and 60 % fresh ones, two updates per batch, later fresh"
                " ones only with a restarted reference. For a token that is PPO with the ratio to"
                " the policy that sampled its own response, clipped around where the step started,"
                " b = proximal/behavior, and not around 1: an old response may move as far within"
                " a step as a fresh one, for which b = 1 and the clip is PPO's. Reading: the clip"
                " is second-hand (a note on the paper that agrees with the earlier GePPO, arXiv"
                " 2111.00072); the official repository holds evaluation code only."
                " `center='one'` is PPO's clip on the mixture. The paper also adds a penalty on"
                " leaving a mixture of the base model and the preceding policy, the base's share"
                " falling from 1 to .5, with a coefficient that could not be read: off by default,"
                " `kl_coef` pulls to the proximal policy, which stands in for the preceding one,"
                " by 1/rho - 1 + log rho. The base model's part, the mixture and the restart"
                " belong to the trainer."
            ),
            formula="loss = -min(r A, clip(r, b-eps_low, b+eps_high) A)"
            " + kl_coef (1/rho - 1 + log rho); w = r where kept",
            keep=_keep,
            weight=ratio_weight,
            loss=_loss,
            penalty=_penalty,
            parameters=MappingProxyType(
                {
                    "eps_low": Parameter(
                        default=EPS_LOW.default, source=EPS_LOW.source, meaning="b - eps_low"
                    ),
                    "eps_high": Parameter(
                        default=EPS_HIGH.default, source=EPS_HIGH.source, meaning="b + eps_high"
                    ),
                    "center": Parameter(
                        default="proximal",
                        source=REMIX_PAPER + ", second-hand",
                        meaning="what the clip is around: b = proximal/behavior, or 1",
                        choices=("proximal", "one"),
                    ),
                    "kl_coef": Parameter(
                        default=0.0,
                        source=REMIX_PAPER + "; coefficient not settled",
                        meaning="of the KL to the proximal policy",
                    ),
                }
            ),
            needs_for=_needs,
            paper="Liang et al. 2025, ReMix (arXiv 2507.06892)",
            link="https://arxiv.org/abs/2507.06892",
        ),
    }
)
