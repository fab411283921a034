"""Objectives that drop tokens or responses by a rule of their own and keep a fixed weight.

The weight of a kept token is a (truncated) ratio without gradient and the loss is -sg(w) A l; a
dropped token has loss 0. OPSM is the exception: it drops responses on top of PPO.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Params, Spec, Tokens, detach
from m2po_lab.core.objectives.clip import EPS_HIGH, EPS_LOW, beyond_clip, clipped_loss
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import ratio_weight
from m2po_lab.core.objectives.weights import capped, weighted_log_loss

DPPO_PAPER = "Qi et al. 2026 (arXiv 2602.04879)"


def _bounds(params: Params) -> tuple[float, float, float]:
    return 1 - params["eps_low"], 1 + params["eps_high"], math.inf


def _opsm_accepted(tokens: Tokens, params: Params) -> Array:
    """Tokens not of a row with mean(anchor - current) > delta and A < 0."""
    ratio = "current/behavior" if params["anchor"] == "behavior" else "current/proximal"
    drift = -tokens.spread(tokens.row_mean(detach(tokens.ratio(ratio))))
    return ~((tokens.advantage < 0) & (drift > params["delta"]))


def _opsm_keep(tokens: Tokens, params: Params) -> Array:
    within = ~beyond_clip(tokens, tokens.log_ratio, *_bounds(params))
    return _opsm_accepted(tokens, params) & within


def _opsm_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """PPO's surrogate, 0 on rejected rows."""
    surrogate = clipped_loss(tokens, keep, tokens.log_ratio, *_bounds(params))
    return tokens.xp.where(_opsm_accepted(tokens, params), surrogate, tokens.zero)


def _opsm_counted(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Valid tokens, or only those of accepted rows."""
    return tokens.valid if params["denominator"] == "valid" else _opsm_accepted(tokens, params)


def _opsm_needs(params: Params) -> tuple[str, ...]:
    return ("proximal_logp",) if params["anchor"] == "proximal" else ()


def _minirl_keep(tokens: Tokens, params: Params) -> Array:
    """PPO's mask on rho = current/proximal."""
    return ~beyond_clip(tokens, tokens.ratio("current/proximal"), *_bounds(params))


def capped_ratio(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Weight w = min(r, cap)."""
    return capped(tokens, detach(tokens.log_ratio), params["cap"], keep)


def _capped_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-sg(min(r, cap)) A l, 0 on dropped tokens."""
    return weighted_log_loss(tokens, capped_ratio(tokens, params, keep), keep)


def _delta_low(params: Params) -> float:
    """Bound of the divergence for A <= 0."""
    low = params["delta_low"]
    return float(params["delta"] if low is None else low)


def _log_probs(tokens: Tokens) -> tuple[Array, Array]:
    """(l, mu) of the sampled token, at most 0, without gradient."""
    xp = tokens.xp
    zero = xp.zeros_like(tokens.advantage)
    return xp.minimum(detach(tokens.current), zero), xp.minimum(detach(tokens.behavior), zero)


def _dppo_tv_keep(tokens: Tokens, params: Params) -> Array:
    """Not (A>0 and pi - mu > delta) and not (A<0 and pi - mu < -delta_low)."""
    current, behavior = _log_probs(tokens)
    adv, gap = tokens.advantage, tokens.xp.exp(current) - tokens.xp.exp(behavior)
    return ~(((adv > 0) & (gap > params["delta"])) | ((adv < 0) & (gap < -_delta_low(params))))


def binary_kl(tokens: Tokens) -> Array:
    """KL(mu || pi) of the two-outcome distribution (sampled token, any other), nats.

    mu log(mu/pi) + (1-mu) log((1-mu)/(1-pi)); 0 log 0 is 0, and it is inf where pi = 1 > mu.
    """
    xp = tokens.xp
    current, behavior = _log_probs(tokens)
    other, rest = -xp.expm1(behavior), -xp.expm1(current)
    both = (other > 0) & (rest > 0)
    one = xp.ones_like(other)
    logs = xp.log(xp.where(both, other, one)) - xp.log(xp.where(both, rest, one))
    gap = xp.where(other > 0, xp.full_like(other, math.inf), xp.zeros_like(other))
    return xp.exp(behavior) * (behavior - current) + xp.where(both, other * logs, gap)


def _dppo_kl_keep(tokens: Tokens, params: Params) -> Array:
    """Not (A>0, pi>mu, KL > delta) and not (A<0, pi<mu, KL > delta_low)."""
    adv, d, kl = tokens.advantage, detach(tokens.log_ratio), binary_kl(tokens)
    up = (adv > 0) & (d > 0) & (kl > params["delta"])
    return ~(up | ((adv < 0) & (d < 0) & (kl > _delta_low(params))))


def _dppo(default: float) -> Mapping[str, Parameter]:
    return MappingProxyType(
        {
            "delta": Parameter(default=default, source=DPPO_PAPER, meaning="largest divergence"),
            "delta_low": Parameter(
                default=None, source="verl clip_ratio_low", meaning="for A<0; None: delta"
            ),
            "cap": Parameter(
                default=20.0, source="verl clip_ratio_c", meaning="largest weight", positive=True
            ),
        }
    )


DPPO_NEEDS = ("current_logp", "behavior_logp", "advantage", "probabilities")

MASK = MappingProxyType(
    {
        "opsm": Spec(
            summary=(
                "Off-policy sequence masking: a bad response (A < 0) whose mean log-prob has"
                " fallen by more than delta nats since it was sampled is dropped whole; the rest is"
                " PPO. Trap: the rule compares with an 'old' log-prob. If that is a recompute with"
                " the trainer's own weights (`anchor='proximal'` before the first update), the mean"
                " is 0 and nothing is ever dropped. ms-swift divides by the tokens that are left"
                " (`denominator='kept'`), slime and TRL by all."
            ),
            formula="drop rows with A<0 and mean_t(mu-l) > delta; else PPO; w = r where kept",
            keep=_opsm_keep,
            weight=ratio_weight,
            loss=_opsm_loss,
            counted=_opsm_counted,
            parameters=MappingProxyType(
                {
                    "delta": Parameter(
                        default=1e-4, source="slime opsm_delta; to .5 in use", meaning="nats"
                    ),
                    "eps_low": EPS_LOW,
                    "eps_high": EPS_HIGH,
                    "anchor": Parameter(
                        default="behavior",
                        source="DeepSeek-V3.2, section 3.1",
                        meaning="policy the drift is measured from",
                        choices=("behavior", "proximal"),
                    ),
                    "denominator": Parameter(
                        default="valid",
                        source="slime, TRL; ms-swift: kept",
                        meaning="tokens that D counts",
                        choices=("valid", "kept"),
                    ),
                }
            ),
            needs_for=_opsm_needs,
            scope="sequence",
            denominator="N, all valid tokens; denominator='kept': those of accepted rows",
            paper="DeepSeek-AI 2025, DeepSeek-V3.2 (arXiv 2512.02556)",
            link="https://arxiv.org/abs/2512.02556",
        ),
        "minirl": Spec(
            summary=(
                "The Qwen team's minimal recipe: REINFORCE with a truncated weight against the"
                " sampler and PPO's mask against the proximal policy. No length normalisation,"
                " because the token objective is then a first-order approximation of the response's"
                " reward. A is reward minus group mean."
            ),
            formula="mask by rho as PPO; w = min(r, cap); loss = -sg(w) A l, summed over a row",
            keep=_minirl_keep,
            weight=capped_ratio,
            loss=_capped_loss,
            parameters=MappingProxyType(
                {
                    "eps_low": Parameter(
                        default=0.2, source="Zheng et al. 2025", meaning="rho 1-eps_low", high=1.0
                    ),
                    "eps_high": Parameter(
                        default=0.27, source="Zheng et al. 2025", meaning="rho 1+eps_high"
                    ),
                    "cap": Parameter(
                        default=5.0, source="Zheng et al. 2025", meaning="cap of r", positive=True
                    ),
                }
            ),
            needs=("current_logp", "behavior_logp", "proximal_logp", "advantage"),
            ratio="current/proximal",
            aggregation="sequence_sum",
            denominator="B; tokens of a row are summed",
            paper="Zheng et al. 2025, MiniRL (arXiv 2512.01374)",
            link="https://arxiv.org/abs/2512.01374",
        ),
        "dppo_tv": Spec(
            summary=(
                "Divergence PPO, binary total variation: a token is dropped by how much"
                " probability mass it moved, |pi - mu|, not by its ratio. Rare tokens may grow"
                " many-fold, frequent ones are held tight. The mask is on the side A pushes only;"
                " the weight is the ratio, truncated far out."
            ),
            formula="drop A>0, pi-mu > delta and A<0, pi-mu < -delta; w = min(r, cap)",
            keep=_dppo_tv_keep,
            weight=capped_ratio,
            loss=_capped_loss,
            parameters=_dppo(0.15),
            needs=DPPO_NEEDS,
            paper="Qi et al. 2026, DPPO (arXiv 2602.04879)",
            link="https://arxiv.org/abs/2602.04879",
        ),
        "dppo_kl": Spec(
            summary=(
                "Divergence PPO, binary KL: as `dppo_tv`, with the KL divergence of the"
                " two-outcome distribution (this token, any other) from sampler to trainer. Public"
                " code adds 1e-8 inside the logarithm; here 0 log 0 is 0 exactly."
            ),
            formula="drop A>0, pi>mu, KL > delta and A<0, pi<mu, KL > delta; w = min(r, cap)",
            keep=_dppo_kl_keep,
            weight=capped_ratio,
            loss=_capped_loss,
            parameters=_dppo(0.05),
            needs=DPPO_NEEDS,
            paper="Qi et al. 2026, DPPO (arXiv 2602.04879)",
            link="https://arxiv.org/abs/2602.04879",
        ),
    }
)
