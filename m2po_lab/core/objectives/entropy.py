"""Objectives that ask how certain the policy was, besides how far it has moved.

STAPO's quantile is of the whole mini-batch: solve `keep` there and pass the mask to `token_loss`.
"""

import math
from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Params, Spec, Tokens, detach
from m2po_lab.core.objectives.clip import beyond_clip, clipped_loss, log_bound
from m2po_lab.core.objectives.order import quantile, row_quantile
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import ratio_weight
from m2po_lab.core.objectives.weights import capped, weighted_log_loss


def _stapo_bounds(params: Params) -> tuple[float, float, float]:
    return 1 - params["eps_low"], 1 + params["eps_high"], math.inf


def spurious(tokens: Tokens, params: Params) -> Array:
    """Tokens with A > 0, pi < tau_p and an entropy below a quantile of this batch."""
    return tokens.once("spurious", lambda: _spurious(tokens, params))


def _spurious(tokens: Tokens, params: Params) -> Array:
    rare = tokens.valid & (tokens.advantage > 0)
    rare = rare & (detach(tokens.current) < log_bound(params["tau_p"]))
    among = rare if params["quantile_of"] == "rare" else tokens.valid
    entropy = tokens.column("entropy")
    return rare & (entropy < quantile(tokens, entropy, among, params["entropy_quantile"]))


def _stapo_keep(tokens: Tokens, params: Params) -> Array:
    """Neither spurious nor beyond PPO's clip."""
    beyond = beyond_clip(tokens, tokens.log_ratio, *_stapo_bounds(params))
    return ~(spurious(tokens, params) | beyond)


def _stapo_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """PPO's surrogate, 0 on spurious tokens, clipped or not.

    A token dropped within the clip is spurious whatever this batch says, so that a mask solved over
    a larger mini-batch holds; for one beyond it this batch decides between 0 and PPO's constant,
    which have the same gradient.
    """
    bounds = _stapo_bounds(params)
    surrogate = clipped_loss(tokens, keep, tokens.log_ratio, *bounds)
    beyond = beyond_clip(tokens, tokens.log_ratio, *bounds)
    silent = ~keep & (~beyond | spurious(tokens, params))
    return tokens.xp.where(silent, tokens.zero, surrogate)


def _stapo_counted(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Tokens that are not spurious."""
    return ~spurious(tokens, params)


def _aspo_bounds(tokens: Tokens, params: Params) -> tuple[Array, Array]:
    """Log of (1 - eps_low, 1 + eps_high) of each token."""
    xp, like = tokens.xp, tokens.advantage
    eps = [params["eps_low"], params["eps_high"]]
    if None in eps:
        entropy = tokens.column("entropy")
        edge = tokens.spread(row_quantile(tokens, entropy, params["entropy_quantile"]))
        free = xp.full_like(like, params["eps_high_entropy"])
        tight = xp.full_like(like, params["eps_low_entropy"])
        by_entropy = xp.where(entropy > edge, free, tight)
    low, high = (by_entropy if e is None else xp.full_like(like, e) for e in eps)
    open_ = low >= 1
    log_low = xp.log(1 - xp.where(open_, xp.zeros_like(low), low))
    return xp.where(open_, xp.full_like(low, -math.inf), log_low), xp.log(1 + high)


def _aspo_keep(tokens: Tokens, params: Params) -> Array:
    """One-sided: not (A>0, r>1+eps_high) and not (A<0, r<1-eps_low)."""
    low, high = _aspo_bounds(tokens, params)
    d, adv = detach(tokens.log_ratio), tokens.advantage
    return ~(((adv > 0) & (d > high)) | ((adv < 0) & (d < low)))


def _aspo_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Weight w = min(1/r, cap) for A>0, min(r, cap) for A<0."""
    d = detach(tokens.log_ratio)
    flipped = tokens.xp.where(tokens.advantage < 0, d, -d)
    return capped(tokens, flipped, params["cap"], keep)


def _aspo_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-sg(w) A l, 0 on dropped tokens."""
    return weighted_log_loss(tokens, _aspo_weight(tokens, params, keep), keep)


def _aspo_needs(params: Params) -> tuple[str, ...]:
    return ("entropy",) if None in (params["eps_low"], params["eps_high"]) else ()


def _number(default: float | None, source: str, meaning: str, high: float = math.inf) -> Parameter:
    return Parameter(default=default, source=source, meaning=meaning, high=high)


STAPO_PAPER = "Liu et al. 2026 (arXiv 2602.15620)"
ASPO_PAPER = "Archer2.0, compute_policy_loss_archer"

ENTROPY = MappingProxyType(
    {
        "stapo": Spec(
            summary=(
                "Spurious-token-aware policy optimization: in good responses, tokens that the"
                " policy finds improbable although it is sure of itself (low entropy) take the"
                " response's whole reward with an outsized gradient; about 1 in 10,000. They are"
                " silenced: no loss, no gradient, and out of the denominator; the rest is PPO."
                " Reading: the paper's versions differ in whose entropies the quantile is of. Since"
                " its fourth version it is of the improbable tokens of good responses, the lower"
                " 75 % of which are silenced (the default); in the first it is of all tokens of the"
                " mini-batch, at 80 % (`quantile_of='all', entropy_quantile=0.8`)."
            ),
            formula="drop A>0, pi < tau_p, entropy < quantile; else PPO; D counts the others",
            keep=_stapo_keep,
            weight=ratio_weight,
            loss=_stapo_loss,
            counted=_stapo_counted,
            parameters=MappingProxyType(
                {
                    "tau_p": Parameter(
                        default=0.002, source=STAPO_PAPER, meaning="probability", positive=True
                    ),
                    "entropy_quantile": _number(
                        0.75, STAPO_PAPER + " v4; v1: 0.8", "entropies below it are low", 1.0
                    ),
                    "quantile_of": Parameter(
                        default="rare",
                        source=STAPO_PAPER + " v4; v1: all",
                        meaning="whose entropies: improbable tokens with A > 0, or all valid ones",
                        choices=("rare", "all"),
                    ),
                    "eps_low": _number(0.2, "its recipe is DAPO's", "bound 1-eps_low", 1.0),
                    "eps_high": _number(0.28, "its recipe is DAPO's", "bound 1+eps_high"),
                }
            ),
            needs=("current_logp", "behavior_logp", "advantage", "entropy", "probabilities"),
            scope="mini-batch",
            denominator="tokens that are not spurious",
            paper="Liu et al. 2026, STAPO (arXiv 2602.15620)",
            link="https://arxiv.org/abs/2602.15620",
        ),
        "aspo": Spec(
            summary=(
                "Asymmetric importance sampling: for A > 0 the ratio is turned over, so a good"
                " token that the policy has not learned yet is pushed harder, and one it already"
                " likes less; for A < 0 the ratio stays. One-sided clip, weights truncated at 3."
                " The clip is wider for the 20 % most uncertain tokens of each response (Archer):"
                " leave eps_low and eps_high at None for that, which needs entropies; a number"
                " holds for all tokens and needs none."
            ),
            formula="w = min(1/r, cap) for A>0, min(r, cap) for A<0; loss = -sg(w) A l",
            keep=_aspo_keep,
            weight=_aspo_weight,
            loss=_aspo_loss,
            parameters=MappingProxyType(
                {
                    "eps_low": _number(None, ASPO_PAPER, "1-eps_low; None: by entropy", 1.0),
                    "eps_high": _number(None, ASPO_PAPER, "1+eps_high; None: by entropy"),
                    "cap": Parameter(
                        default=3.0, source=ASPO_PAPER, meaning="largest weight", positive=True
                    ),
                    "eps_low_entropy": _number(0.2, ASPO_PAPER, "eps of certain tokens", 1.0),
                    "eps_high_entropy": _number(0.4, ASPO_PAPER, "eps of uncertain tokens", 1.0),
                    "entropy_quantile": _number(0.8, ASPO_PAPER, "of a row: certain below", 1.0),
                }
            ),
            needs_for=_aspo_needs,
            scope="sequence",
            paper="Wang et al. 2025, ASPO (arXiv 2510.06062)",
            link="https://arxiv.org/abs/2510.06062",
        ),
    }
)
