"""Objectives whose novelty is which data they train on; what remains for a token is a clip."""

import math
from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Params, Spec, Tokens
from m2po_lab.core.objectives.clip import EPS_HIGH, EPS_LOW, clip_loss, keep_clip
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import ratio_weight
from m2po_lab.core.objectives.tokens import RATIO_LIMIT

REMIX_PAPER = "Liang et al. 2025 (arXiv 2507.06892); coefficients not settled"


def _needs(params: Params) -> tuple[str, ...]:
    return ("proximal_logp",) if params["kl_coef"] else ()


def _back(tokens: Tokens) -> Array:
    """Log of proximal over current, at most RATIO_LIMIT."""
    return tokens.xp.clip(-tokens.ratio("current/proximal"), -math.inf, RATIO_LIMIT)


def _penalty(tokens: Tokens, params: Params, keep: Array) -> Array:
    """kl_coef (1/rho - 1): the gradient of -kl_coef (1/rho - 1 + log rho)."""
    if not params["kl_coef"]:
        return tokens.xp.zeros_like(tokens.advantage)
    return params["kl_coef"] * tokens.xp.expm1(_back(tokens))


def _loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """PPO's surrogate, plus kl_coef (1/rho - 1 + log rho)."""
    surrogate = clip_loss(tokens, params, keep)
    if not params["kl_coef"]:
        return surrogate
    back = _back(tokens)
    return surrogate + params["kl_coef"] * (tokens.xp.expm1(back) - back)


DATA_MIXING = MappingProxyType(
    {
        "remix": Spec(
            summary=(
                "Reincarnating mix-policy gradient: mini-batches of about 40 % old responses (from"
                " the last two policies) and 60 % fresh ones, two updates per batch, later fresh"
                " ones only from a restarted reference. For a token that is PPO's clip with the"
                " ratio to the policy that sampled its own response, and a penalty on leaving both"
                " the base model and the preceding policy. The official code is not public and the"
                " coefficients could not be read, so the penalty is off by default; `kl_coef` turns"
                " on the part towards the preceding policy (the proximal log-probs), estimated as"
                " 1/rho - 1 + log rho. The base model's part, the mixture and the restart belong to"
                " the trainer."
            ),
            formula="loss = -min(r A, clip(r) A) + kl_coef (1/rho - 1 + log rho); w = r where kept",
            keep=keep_clip,
            weight=ratio_weight,
            loss=_loss,
            penalty=_penalty,
            parameters=MappingProxyType(
                {
                    "eps_low": EPS_LOW,
                    "eps_high": EPS_HIGH,
                    "kl_coef": Parameter(
                        default=0.0, source=REMIX_PAPER, meaning="of the KL to the proximal policy"
                    ),
                }
            ),
            needs_for=_needs,
            paper="Liang et al. 2025, ReMix (arXiv 2507.06892)",
            link="https://arxiv.org/abs/2507.06892",
        ),
    }
)
