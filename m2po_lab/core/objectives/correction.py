"""Corrections for the gap between sampler and trainer: truncated, masked and decoupled weights.

Two settings. Without a proximal policy (`proximal=False`, verl's bypass mode) the correction is of
r = current/behavior and the loss is the policy gradient -sg(w) A l. With one, the correction is of
b = proximal/behavior, carries no gradient, and multiplies PPO's clipped surrogate of
rho = current/proximal.
"""

import math
from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Params, Spec, Tokens, detach
from m2po_lab.core.objectives.clip import beyond_clip, clipped_loss, log_bound
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import keep_all
from m2po_lab.core.objectives.weights import capped, weighted_log_loss

TIS_SOURCE = "Yao et al. 2025; verl rollout_is_threshold"
PROXIMAL = MappingProxyType(
    {
        "proximal": Parameter(
            default=True,
            source="Hilton et al. 2022: old policy and sampler are two",
            meaning="PPO on current/proximal, corrected by proximal/behavior; False: only r",
        ),
        "eps_low": Parameter(
            default=0.2, source="PPO, section 6.1", meaning="rho bound 1 - eps_low", high=1.0
        ),
        "eps_high": Parameter(
            default=0.2, source="PPO, section 6.1", meaning="rho bound 1 + eps_high"
        ),
    }
)


def needs_proximal(params: Params) -> tuple[str, ...]:
    """The column that `proximal=True` adds."""
    return ("proximal_logp",) if params["proximal"] else ()


def correction_log_ratio(tokens: Tokens, params: Params) -> Array:
    """Log b with a proximal policy, log r without; never with a gradient."""
    name = "proximal/behavior" if params["proximal"] else "current/behavior"
    return detach(tokens.ratio(name))


def proximal_bounds(params: Params) -> tuple[float, float, float]:
    """PPO's bounds on rho: (1 - eps_low, 1 + eps_high, no dual clip)."""
    return 1 - params["eps_low"], 1 + params["eps_high"], math.inf


def within_proximal_clip(tokens: Tokens, params: Params) -> Array:
    """Tokens whose rho is within PPO's bounds; all without a proximal policy."""
    if not params["proximal"]:
        return keep_all(tokens, params)
    return ~beyond_clip(tokens, tokens.ratio("current/proximal"), *proximal_bounds(params))


def corrected_weight(tokens: Tokens, params: Params, keep: Array, correction: Array) -> Array:
    """Return correction * rho with a proximal policy, the correction alone without."""
    if not params["proximal"]:
        return correction
    return correction * tokens.exp(tokens.ratio("current/proximal"), keep)


def corrected_loss(tokens: Tokens, params: Params, keep: Array, correction: Array) -> Array:
    """sg(correction) times PPO's surrogate of rho, or -sg(correction) A l."""
    if not params["proximal"]:
        return weighted_log_loss(tokens, correction, keep)
    surrogate = clipped_loss(
        tokens, keep, tokens.ratio("current/proximal"), *proximal_bounds(params)
    )
    return detach(correction) * surrogate


def _tis_correction(tokens: Tokens, params: Params, where: Array) -> Array:
    """min(b, C), or min(r, C)."""
    return capped(tokens, correction_log_ratio(tokens, params), params["cap"], where)


def _tis_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    return corrected_weight(tokens, params, keep, _tis_correction(tokens, params, keep))


def _tis_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    return corrected_loss(tokens, params, keep, _tis_correction(tokens, params, tokens.valid))


def _sequence_correction(tokens: Tokens, params: Params, where: Array) -> Array:
    """min(S, C) with S the product of the row's b (or r)."""
    log_s = tokens.spread(tokens.batch.row_sum(correction_log_ratio(tokens, params)))
    return capped(tokens, log_s, params["cap"], where)


def _sequence_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    return corrected_weight(tokens, params, keep, _sequence_correction(tokens, params, keep))


def _sequence_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    return corrected_loss(tokens, params, keep, _sequence_correction(tokens, params, tokens.valid))


def _icepop_inside(tokens: Tokens, params: Params) -> Array:
    """Tokens whose b (or r) lies in [low, high]."""
    d = correction_log_ratio(tokens, params)
    return (d >= log_bound(params["low"])) & (d <= log_bound(params["high"]))


def _icepop_keep(tokens: Tokens, params: Params) -> Array:
    return _icepop_inside(tokens, params) & within_proximal_clip(tokens, params)


def _icepop_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    correction = tokens.exp(correction_log_ratio(tokens, params), keep)
    return corrected_weight(tokens, params, keep, correction)


def _icepop_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    inside = tokens.valid & _icepop_inside(tokens, params)
    correction = tokens.exp(correction_log_ratio(tokens, params), inside)
    return corrected_loss(tokens, params, keep, correction)


def _topr_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """1 for A > 0, else min(r, 1) with r of the token or of the response."""
    d = tokens.log_ratio
    if params["level"] == "sequence":
        d = tokens.spread(tokens.batch.row_sum(d))
    tapered = capped(tokens, d, 1.0, keep)
    return tokens.xp.where(tokens.advantage > 0, tokens.xp.ones_like(tapered), tapered)


def _topr_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-sg(w) A l."""
    return weighted_log_loss(tokens, _topr_weight(tokens, params, keep), keep)


def _cap(default: float, source: str, meaning: str) -> Parameter:
    return Parameter(default=default, source=source, meaning=meaning, positive=True)


CORRECTION = MappingProxyType(
    {
        "tis": Spec(
            summary=(
                "Truncated importance sampling per token: multiply the loss by the ratio between"
                " the trainer's and the sampler's probability, but never by more than a cap. No"
                " token is dropped; the truncation biases towards the sampler what it spares in"
                " variance."
            ),
            formula="w = min(b, C) rho within PPO's clip of rho; without proximal w = min(r, C)",
            keep=within_proximal_clip,
            weight=_tis_weight,
            loss=_tis_loss,
            parameters=MappingProxyType(
                {"cap": _cap(2.0, TIS_SOURCE, "C, largest weight"), **PROXIMAL}
            ),
            needs_for=needs_proximal,
            paper="Yao et al. 2025, Your efficient RL framework secretly brings you off-policy RL",
            link="https://fengyao.notion.site/off-policy-rl",
        ),
        "tis_sequence": Spec(
            summary=(
                "Truncated importance sampling per response: one weight a row, the product of its"
                " token ratios, capped. The product is the exact weight of the response, and its"
                " logarithm grows with length, so on long responses most weights sit at 0 or at"
                " the cap."
            ),
            formula="w = min(S_i, C), S_i = exp(sum_t log b); times rho within PPO's clip",
            keep=within_proximal_clip,
            weight=_sequence_weight,
            loss=_sequence_loss,
            parameters=MappingProxyType(
                {"cap": _cap(2.0, TIS_SOURCE, "C, largest weight; 2-10 in use"), **PROXIMAL}
            ),
            needs_for=needs_proximal,
            scope="sequence",
            paper="Liu, Li et al. 2025, When speed kills stability; verl rollout_is=sequence",
            link="https://richardli.xyz/rl-collapse",
        ),
        "icepop": Spec(
            summary=(
                "Masked importance sampling per token on two sides: a token whose trainer-sampler"
                " ratio leaves [low, high] has weight 0, the others keep their ratio. The"
                " denominator stays the number of valid tokens."
            ),
            formula="w = b rho if low <= b <= high and rho within PPO's clip, else 0",
            keep=_icepop_keep,
            weight=_icepop_weight,
            loss=_icepop_loss,
            parameters=MappingProxyType(
                {
                    "low": Parameter(
                        default=0.5, source="Ling team 2025", meaning="smallest b (or r)"
                    ),
                    "high": _cap(5.0, "Ling team 2025", "largest b"),
                    **PROXIMAL,
                }
            ),
            needs_for=needs_proximal,
            paper="Ling team 2025, Every step evolves, IcePop (arXiv 2510.18855)",
            link="https://arxiv.org/abs/2510.18855",
        ),
        "topr": Spec(
            summary=(
                "Tapered off-policy REINFORCE: good responses are imitated at full weight however"
                " old they are, bad ones are pushed down by their ratio truncated at 1, so that"
                " what the policy already gave up is not pushed further. The paper's ratio is of"
                " the response; ROLL, and the default here, take it per token. The sign of A"
                " stands for the sign of the reward."
            ),
            formula="w = 1 for A>0, min(r, 1) for A<=0; loss = -sg(w) A l",
            keep=keep_all,
            weight=_topr_weight,
            loss=_topr_loss,
            parameters=MappingProxyType(
                {
                    "level": Parameter(
                        default="token",
                        source="ROLL; the paper's is sequence",
                        meaning="ratio of the token, or of the response",
                        choices=("token", "sequence"),
                    )
                }
            ),
            scope="sequence",
            paper="Le Roux et al. 2025, TOPR (arXiv 2503.14286)",
            link="https://arxiv.org/abs/2503.14286",
        ),
    }
)
