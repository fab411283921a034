"""Objectives that treat the tokens whose log-prob and advantage covary most apart.

cov_t = (A_t - mean A)(l_t - mean l) over the mini-batch; its mean is what lowers the entropy.
"""

import math
from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Params, Spec, Tokens, detach
from m2po_lab.core.objectives.clip import EPS_HIGH, EPS_LOW, beyond_clip, clipped_loss
from m2po_lab.core.objectives.order import count, masked_mean, random_keys, top
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import keep_all, ratio_loss, ratio_weight

COV_PAPER = "Cui et al. 2025 (arXiv 2505.22617); verl defaults"


def covariance(tokens: Tokens) -> Array:
    """(A - mean A)(l - mean l) of each token, without gradient; in nats."""
    adv, current = tokens.advantage, detach(tokens.current)
    spread = adv - masked_mean(tokens, adv, tokens.valid)
    return spread * (current - masked_mean(tokens, current, tokens.valid))


def selected_count(tokens: Tokens, fraction: float) -> Array:
    """max(1, floor(fraction N)), 0-d int64."""
    xp = tokens.xp
    n = xp.astype(count(tokens, tokens.valid), xp.float64)
    share = xp.astype(xp.floor(n * fraction), xp.int64)
    return xp.where(share > 1, share, xp.ones_like(share))


def _bounds(params: Params) -> tuple[float, float, float]:
    return 1 - params["eps_low"], 1 + params["eps_high"], math.inf


def clip_cov_candidates(tokens: Tokens, params: Params) -> Array:
    """Tokens within PPO's clip whose covariance lies between the bounds."""
    cov = covariance(tokens)
    between = (cov > params["cov_low"]) & (cov < params["cov_high"])
    return tokens.valid & between & ~beyond_clip(tokens, tokens.log_ratio, *_bounds(params))


def _clip_cov_keep(tokens: Tokens, params: Params) -> Array:
    """Within PPO's clip, and not one of the candidates drawn."""
    drawn = top(
        tokens,
        random_keys(tokens, params["seed"]),
        clip_cov_candidates(tokens, params),
        selected_count(tokens, params["fraction"]),
    )
    return ~(drawn | beyond_clip(tokens, tokens.log_ratio, *_bounds(params)))


def _clip_cov_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """PPO's surrogate; a token dropped within the clip was drawn and has loss 0."""
    bounds = _bounds(params)
    surrogate = clipped_loss(tokens, keep, tokens.log_ratio, *bounds)
    drawn = ~keep & ~beyond_clip(tokens, tokens.log_ratio, *bounds)
    return tokens.xp.where(drawn, tokens.zero, surrogate)


def _clip_cov_check(params: Params) -> None:
    if params["seed"] != int(params["seed"]):
        raise ValueError(f"clip_cov: seed={params['seed']!r}: pass a whole number")
    if params["cov_low"] > params["cov_high"]:
        low, high = params["cov_low"], params["cov_high"]
        raise ValueError(f"clip_cov: cov_low={low} is above cov_high={high}; swap them")


def kl_cov_selected(tokens: Tokens, params: Params) -> Array:
    """The tokens with the largest covariances; ties go to the earliest."""
    k = selected_count(tokens, params["fraction"])
    return top(tokens, covariance(tokens), tokens.valid, k)


def _kl_cov_penalty(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-coef sign(d) on the selected tokens."""
    push = -params["coef"] * tokens.xp.sign(tokens.log_ratio)
    return tokens.xp.where(kl_cov_selected(tokens, params), push, tokens.zero)


def _kl_cov_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-r A, plus coef |d| on the selected tokens."""
    xp = tokens.xp
    pull = params["coef"] * xp.abs(tokens.log_ratio)
    extra = xp.where(kl_cov_selected(tokens, params), pull, tokens.zero)
    return ratio_loss(tokens, params, keep) + extra


def _fraction(meaning: str) -> Parameter:
    return Parameter(default=2e-4, source=COV_PAPER, meaning=meaning, high=1.0, positive=True)


COVARIANCE = MappingProxyType(
    {
        "clip_cov": Spec(
            summary=(
                "Clip-Cov: among the tokens whose covariance lies between two bounds, a few drawn"
                " at random lose their gradient, on top of PPO's clip, so that entropy falls more"
                " slowly. Public code draws from torch's global generator; here the draw is a"
                " hash of `seed` and of what the token is, the same on every library and in any"
                " order of the rows: pass another seed every step."
            ),
            formula="drop max(1, floor(fraction N)) of cov_low < cov_t < cov_high; else PPO",
            keep=_clip_cov_keep,
            weight=ratio_weight,
            loss=_clip_cov_loss,
            check=_clip_cov_check,
            parameters=MappingProxyType(
                {
                    "fraction": _fraction("share of the valid tokens that is drawn"),
                    "cov_low": Parameter(
                        default=1.0, source=COV_PAPER, meaning="nats", low=-math.inf
                    ),
                    "cov_high": Parameter(
                        default=5.0, source=COV_PAPER, meaning="nats", low=-math.inf
                    ),
                    "eps_low": EPS_LOW,
                    "eps_high": EPS_HIGH,
                    "seed": Parameter(default=0, source="arbitrary", meaning="of the draw"),
                }
            ),
            needs=("current_logp", "behavior_logp", "advantage", "probabilities"),
            scope="mini-batch",
            paper="Cui et al. 2025, The entropy mechanism (arXiv 2505.22617)",
            link="https://arxiv.org/abs/2505.22617",
        ),
        "kl_cov": Spec(
            summary=(
                "KL-Cov: no clip; the few tokens with the largest covariance also pay coef |d|, a"
                " penalty on leaving the policy that sampled them, whatever their advantage. The"
                " choice is made within the loss, so pass whole mini-batches."
            ),
            formula="loss = -r A, + coef |d| on the top max(1, floor(fraction N)) by cov_t; w = r",
            keep=keep_all,
            weight=ratio_weight,
            loss=_kl_cov_loss,
            penalty=_kl_cov_penalty,
            parameters=MappingProxyType(
                {
                    "fraction": _fraction("share of the valid tokens that pays"),
                    "coef": Parameter(default=1.0, source=COV_PAPER, meaning="per nat of |d|"),
                }
            ),
            needs=("current_logp", "behavior_logp", "advantage", "probabilities"),
            scope="mini-batch",
            paper="Cui et al. 2025, The entropy mechanism (arXiv 2505.22617)",
            link="https://arxiv.org/abs/2505.22617",
        ),
    }
)
