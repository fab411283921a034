"""Objectives that look at the whole mini-batch, or at entropies, before they judge a token.

BAPO, STAPO and VCPO give the same answer only when `keep` sees the whole optimizer mini-batch:
solve it there and pass the mask to `token_loss`.
"""

import math
from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.moments import ess_fraction, sums
from m2po_lab.core.objectives.base import Params, Spec, Tokens, detach
from m2po_lab.core.objectives.clip import beyond_clip, clipped_loss, log_bound
from m2po_lab.core.objectives.correction import capped
from m2po_lab.core.objectives.order import quantile, row_quantile
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import keep_all, ratio_weight
from m2po_lab.core.objectives.sequence import log_product
from m2po_lab.core.objectives.soft import weighted_log_loss

BAPO_PAPER = "Xi et al. 2025 (arXiv 2510.18927), README"


def bapo_ladder(params: Params) -> list[tuple[float, float]]:
    """(low, high) bounds in the order tried: low raised to its maximum first, then high."""
    low, high = params["low_start"], params["high_start"]
    ladder = [(low, high)]
    while low < params["low_max"] and params["low_step"] > 0:
        low = min(low + params["low_step"], params["low_max"])
        ladder.append((low, high))
    while high < params["high_max"] and params["high_step"] > 0:
        high = min(high + params["high_step"], params["high_max"])
        ladder.append((low, high))
    return ladder


def bapo_bounds(tokens: Tokens, params: Params) -> tuple[Array, Array]:
    """First bounds at which sum_{A>=0} min(r, high) A >= target sum_{A<0} max(r, low) |A|.

    The last ones where none is enough. Negative tokens are not capped at c here, as in the paper's
    code. Both 0-d.
    """
    xp, adv = tokens.xp, tokens.advantage
    ratio = detach(tokens.exp(tokens.log_ratio, tokens.valid))
    up, down = tokens.valid & (adv >= 0), tokens.valid & (adv < 0)

    def contribution(low: float, high: float) -> tuple[Array, Array]:
        above = xp.minimum(ratio, xp.full_like(ratio, high)) * adv
        below = xp.maximum(ratio, xp.full_like(ratio, low)) * -adv
        zero = tokens.zero
        return xp.sum(xp.where(up, above, zero)), xp.sum(xp.where(down, below, zero))

    low, high, done = None, None, None
    for rung in bapo_ladder(params):
        gain, loss = contribution(*rung)
        if done is None:
            low, high = (xp.full_like(tokens.zero, bound) for bound in rung)
        else:
            low, high = (
                xp.where(done, found, xp.full_like(found, bound))
                for found, bound in zip((low, high), rung, strict=True)
            )
        enough = gain >= params["target_ratio"] * loss
        done = enough if done is None else done | enough
    return low, high


def _bapo_keep(tokens: Tokens, params: Params) -> Array:
    """PPO's mask with the searched bounds, and A<0 at most c."""
    low, high = bapo_bounds(tokens, params)
    d, adv, xp = tokens.log_ratio, tokens.advantage, tokens.xp
    too_low = (d < xp.log(low)) | (d > log_bound(params["c"]))
    return ~(((adv > 0) & (d > xp.log(high))) | ((adv < 0) & too_low))


def _bapo_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-r A where kept, -bound A where dropped."""
    xp, d, adv = tokens.xp, tokens.log_ratio, tokens.advantage
    low, high = bapo_bounds(tokens, params)
    below = xp.where(d > 0, xp.full_like(d, params["c"]), low * xp.ones_like(d))
    bound = xp.where(adv > 0, high * xp.ones_like(d), below)
    return -xp.where(keep, tokens.exp(d, keep), bound) * adv


def _bapo_report(tokens: Tokens, params: Params, keep: Array) -> dict[str, Array]:
    """low_bound and high_bound: the ratio bounds that the search ended at."""
    low, high = bapo_bounds(tokens, params)
    return {"low_bound": low, "high_bound": high}


def _bapo_check(params: Params) -> None:
    for side in ("low", "high"):
        start, top = params[f"{side}_start"], params[f"{side}_max"]
        if start > top:
            raise ValueError(f"bapo: {side}_start={start} is above {side}_max={top}; swap them")


def _stapo_bounds(params: Params) -> tuple[float, float, float]:
    return 1 - params["eps_low"], 1 + params["eps_high"], math.inf


def spurious(tokens: Tokens, params: Params) -> Array:
    """Tokens with A > 0, pi < tau_p and an entropy below the mini-batch's quantile."""
    entropy = tokens.column("entropy")
    low = entropy < quantile(tokens, entropy, params["entropy_quantile"])
    rare = detach(tokens.current) < log_bound(params["tau_p"])
    return (tokens.advantage > 0) & rare & low


def _stapo_keep(tokens: Tokens, params: Params) -> Array:
    """Neither spurious nor beyond PPO's clip."""
    beyond = beyond_clip(tokens, tokens.log_ratio, *_stapo_bounds(params))
    return ~(spurious(tokens, params) | beyond)


def _stapo_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """PPO's surrogate; a token dropped within the clip is spurious and has loss 0."""
    bounds = _stapo_bounds(params)
    surrogate = clipped_loss(tokens, keep, tokens.log_ratio, *bounds)
    silent = ~keep & ~beyond_clip(tokens, tokens.log_ratio, *bounds)
    return tokens.xp.where(silent, tokens.zero, surrogate)


def _stapo_counted(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Tokens that are not spurious."""
    return ~spurious(tokens, params)


def _vcpo_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """w = min(S_i, C)."""
    return capped(tokens, log_product(tokens), params["cap"], keep)


def _vcpo_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-sg(w) A l."""
    return weighted_log_loss(tokens, _vcpo_weight(tokens, params, keep), keep)


def _vcpo_report(tokens: Tokens, params: Params, keep: Array) -> dict[str, Array]:
    """sequence_ess_fraction of the raw S_i, and learning_rate_scale = min(1, ess / base)^.5."""
    xp = tokens.xp
    total = tokens.batch.row_sum(tokens.log_ratio)
    ess = ess_fraction(sums(total, tokens.row_counts > 0))
    scale = xp.sqrt(xp.minimum(ess / params["base_ess"], xp.ones_like(ess)))
    return {"sequence_ess_fraction": ess, "learning_rate_scale": scale}


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
    """w = min(1/r, cap) for A>0, min(r, cap) for A<0."""
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
VCPO_PAPER = "Huang et al. 2026, official scripts"

BATCH_ADAPTIVE = MappingProxyType(
    {
        "bapo": Spec(
            summary=(
                "Balanced policy optimization: PPO whose bounds are searched for every mini-batch"
                " until positive tokens contribute at least `target_ratio` times what negative ones"
                " do (1 is the paper's share rho_0 = .5). The lower bound rises first, dropping"
                " negative tokens whose ratio fell; then the upper, keeping positive ones that"
                " rose. Bounds are ratios, not eps. Steps are the public recipe's and smaller"
                " than the paper needs; the search ends at the maxima if nothing is enough."
            ),
            formula="PPO with (low, high) searched, A<0 capped at c; w = r where kept",
            keep=_bapo_keep,
            weight=ratio_weight,
            loss=_bapo_loss,
            check=_bapo_check,
            report=_bapo_report,
            parameters=MappingProxyType(
                {
                    "low_start": Parameter(
                        default=0.6, source=BAPO_PAPER, meaning="a-, first lower", positive=True
                    ),
                    "low_max": _number(0.9, BAPO_PAPER, "b-, last lower bound"),
                    "high_start": Parameter(
                        default=1.2, source=BAPO_PAPER, meaning="a+, first upper", positive=True
                    ),
                    "high_max": _number(3.0, BAPO_PAPER, "b+, last upper bound"),
                    "low_step": _number(0.02, "recipe/bapo run script", "step of low"),
                    "high_step": _number(0.05, "recipe/bapo run script", "step of high"),
                    "target_ratio": _number(1.0, BAPO_PAPER, "positive over negative"),
                    "c": Parameter(
                        default=3.0, source="verl clip_ratio_c", meaning="dual clip", low=1.0
                    ),
                }
            ),
            scope="mini-batch",
            paper="Xi et al. 2025, BAPO (arXiv 2510.18927)",
            link="https://arxiv.org/abs/2510.18927",
        ),
        "stapo": Spec(
            summary=(
                "Spurious-token-aware policy optimization: in good responses, tokens that the"
                " policy finds improbable although it is sure of itself (low entropy) take the"
                " response's whole reward with an outsized gradient; about 1 in 10,000. They are"
                " silenced and leave the denominator; the rest is PPO. Sources disagree about the"
                " entropy quantile (.8 in a summary of v1, .75 in later notes, the default)."
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
                        0.75, STAPO_PAPER, "of the mini-batch's entropies", 1.0
                    ),
                    "eps_low": _number(0.2, "DAPO, its base recipe", "bound 1-eps_low", 1.0),
                    "eps_high": _number(0.28, "DAPO, its base recipe", "bound 1+eps_high"),
                }
            ),
            needs=("current_logp", "behavior_logp", "advantage", "entropy", "probabilities"),
            scope="mini-batch",
            denominator="tokens that are not spurious",
            paper="Liu et al. 2026, STAPO (arXiv 2602.15620)",
            link="https://arxiv.org/abs/2602.15620",
        ),
        "vcpo": Spec(
            summary=(
                "Variance-controlled policy optimization: truncated importance weights of whole"
                " responses, and a step size that follows the effective sample size of the"
                " mini-batch, sqrt(ESS / (B base)). The step size is the optimizer's affair: the"
                " loss leaves it out and the diagnostic `learning_rate_scale` gives it. Its"
                " minimum-variance baseline needs gradient norms and belongs into the advantage."
            ),
            formula="w = min(S_i, C); loss = -sg(w) A l; lr *= min(1, ESS/(B base))^.5",
            keep=keep_all,
            weight=_vcpo_weight,
            loss=_vcpo_loss,
            report=_vcpo_report,
            parameters=MappingProxyType(
                {
                    "cap": Parameter(
                        default=8.0, source=VCPO_PAPER, meaning="C, cap of S_i", positive=True
                    ),
                    "base_ess": Parameter(
                        default=1.0,
                        source=VCPO_PAPER,
                        meaning="ESS fraction at which the step size is not reduced",
                        positive=True,
                    ),
                }
            ),
            scope="mini-batch",
            paper="Huang et al. 2026, VCPO (arXiv 2602.17616)",
            link="https://arxiv.org/abs/2602.17616",
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
