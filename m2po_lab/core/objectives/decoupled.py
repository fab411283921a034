"""Decoupled PPO: clip around one policy, correct for another."""

from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Params, Spec, Tokens, detach
from m2po_lab.core.objectives.clip import beyond_clip, clipped_loss, log_bound
from m2po_lab.core.objectives.correction import PROXIMAL, proximal_bounds
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.weights import capped


def _decoupled_inside(tokens: Tokens, params: Params) -> Array:
    """Tokens that the rejection leaves: b <= cap under action 'mask', all otherwise."""
    if params["action"] != "mask":
        return tokens.valid
    return detach(tokens.ratio("proximal/behavior")) <= log_bound(params["cap"])


def _decoupled_correction(tokens: Tokens, params: Params, where: Array) -> Array:
    """b, min(b, cap), or 1 where no rejection is configured."""
    log_b = detach(tokens.ratio("proximal/behavior"))
    if params["action"] == "none":
        return tokens.xp.ones_like(log_b)
    return capped(tokens, log_b, params["cap"], where)


def _decoupled_keep(tokens: Tokens, params: Params) -> Array:
    rho = tokens.ratio("current/proximal")
    return _decoupled_inside(tokens, params) & ~beyond_clip(tokens, rho, *proximal_bounds(params))


def _decoupled_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    rho = tokens.exp(tokens.ratio("current/proximal"), keep)
    return rho * _decoupled_correction(tokens, params, keep)


def _decoupled_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    inside = tokens.valid & _decoupled_inside(tokens, params)
    surrogate = clipped_loss(
        tokens, keep, tokens.ratio("current/proximal"), *proximal_bounds(params)
    )
    correction = _decoupled_correction(tokens, params, inside)
    return tokens.xp.where(inside, correction * surrogate, tokens.zero)


DECOUPLED = MappingProxyType(
    {
        "decoupled_ppo": Spec(
            summary=(
                "PPO with three policies: the clip is around the proximal policy (the trainer at"
                " the start of the step), and a weight without gradient corrects for the older"
                " policy that sampled. AReaL rejects tokens whose correction exceeds `cap`"
                " (action 'mask') or cuts it there ('clamp'); D stays the number of valid tokens."
                " Trap: without rejection sampling AReaL's loss applies no correction at all"
                " ('none' here), whatever the sampler; the paper's is cap = infinity."
            ),
            formula="loss = -sg(b 1[b<=cap]) min(rho A, clip(rho) A); w = rho b where kept",
            keep=_decoupled_keep,
            weight=_decoupled_weight,
            loss=_decoupled_loss,
            parameters=MappingProxyType(
                {
                    "cap": Parameter(
                        default=5.0,
                        source="AReaL rejection_sampling.upper",
                        meaning="largest b",
                        positive=True,
                    ),
                    "action": Parameter(
                        default="mask",
                        source="AReaL rejection_sampling.action",
                        meaning="reject beyond the cap, cut the weight there, or no weight at all",
                        choices=("mask", "clamp", "none"),
                    ),
                    "eps_low": PROXIMAL["eps_low"],
                    "eps_high": PROXIMAL["eps_high"],
                }
            ),
            needs=("current_logp", "behavior_logp", "proximal_logp", "advantage"),
            ratio="current/proximal",
            paper="Hilton et al. 2022 (arXiv 2110.00641); Fu et al. 2025, AReaL (2505.24298)",
            link="https://arxiv.org/abs/2505.24298",
        ),
    }
)
