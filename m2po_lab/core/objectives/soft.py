"""Objectives that shrink a token's weight instead of dropping it."""

import math
from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Params, Spec, Tokens, detach
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import keep_all
from m2po_lab.core.objectives.weights import clipped, weighted_log_loss

SATURATED = 40.0
"""Beyond this a sigmoid is 0 or 1 in float64; its argument is cut there, so exp stays finite."""


def _cispo_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Weight w = clip(r, 1 - eps_low, 1 + eps_high)."""
    low, high = 1 - params["eps_low"], 1 + params["eps_high"]
    return clipped(tokens, tokens.log_ratio, low, high, keep)


def _cispo_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-sg(w) A l."""
    return weighted_log_loss(tokens, _cispo_weight(tokens, params, keep), keep)


def _sapo_gate(tokens: Tokens, params: Params, keep: Array) -> tuple[Array, Array, Array]:
    """(r, temperature, sigmoid(temperature (r - 1)))."""
    xp, like = tokens.xp, tokens.advantage
    tau = xp.where(
        like > 0, xp.full_like(like, params["tau_pos"]), xp.full_like(like, params["tau_neg"])
    )
    ratio = tokens.exp(tokens.log_ratio, keep)
    argument = xp.clip(tau * (ratio - 1), -SATURATED, SATURATED)
    return ratio, tau, 1 / (1 + xp.exp(-argument))


def _sapo_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Weight w = 4 sig (1 - sig) r: 1 on policy, and 0 far above it."""
    ratio, tau, gate = _sapo_gate(tokens, params, keep)
    open_ = tokens.xp.abs(tau * (ratio - 1)) < SATURATED
    return tokens.xp.where(open_, 4 * gate * (1 - gate) * ratio, tokens.zero)


def _sapo_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-(4 / temperature) sigmoid(temperature (r - 1)) A."""
    _, tau, gate = _sapo_gate(tokens, params, keep)
    return -4 / tau * gate * tokens.advantage


def _maspo_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Weight w = r exp(-(r-1)^2 / (2 sigma^2)) for trust-region tokens, r for the others."""
    xp, d, adv = tokens.xp, tokens.log_ratio, tokens.advantage
    active = keep & (((adv > 0) & (d > 0)) | ((adv < 0) & (d < 0)))
    return tokens.exp(d + xp.where(active, _maspo_log_gate(tokens, params, active), 0.0), keep)


def _maspo_log_gate(tokens: Tokens, params: Params, active: Array) -> Array:
    """Log of the gate, -(r-1)^2 / (2 sigma^2); read on active tokens."""
    xp, adv = tokens.xp, tokens.advantage
    mass = tokens.exp(math.log(params["sigma"]) - params["alpha"] * tokens.behavior, active)
    if params["sigma_max"] is not None:
        mass = xp.clip(mass, params["sigma"], max(params["sigma"], params["sigma_max"]))
    risk = 1 + params["beta"] * xp.abs(adv)
    sigma = xp.where(active, xp.where(adv > 0, mass * risk, mass / risk), xp.ones_like(adv))
    excess = (tokens.exp(tokens.log_ratio, active) - 1) / sigma
    return -excess * excess / 2


def _maspo_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-sg(gate) r A: the gate has no gradient."""
    xp, d, adv = tokens.xp, tokens.log_ratio, tokens.advantage
    active = keep & (((adv > 0) & (d > 0)) | ((adv < 0) & (d < 0)))
    log_gate = detach(_maspo_log_gate(tokens, params, active))
    return -tokens.exp(d + xp.where(active, log_gate, 0.0), keep) * adv


def _number(default: float, source: str, meaning: str, *, positive: bool = False) -> Parameter:
    return Parameter(default=default, source=source, meaning=meaning, positive=positive)


MASPO_PAPER = "Fu et al. 2026 (arXiv 2602.17550), official README"
SAPO_PAPER = "SAPO 2025 (arXiv 2511.20347), section 4"

SOFT = MappingProxyType(
    {
        "cispo": Spec(
            summary=(
                "Clip the importance weight, never the token: the weight is bounded and fixed, the"
                " gradient flows through log pi, so rare tokens that PPO would drop keep teaching"
                " with a bounded weight. MiniMax and ScaleRL bound it from above only: eps_low = 1."
            ),
            formula="w = clip(r, 1-eps_low, 1+eps_high); loss = -sg(w) A l",
            keep=keep_all,
            weight=_cispo_weight,
            loss=_cispo_loss,
            parameters=MappingProxyType(
                {
                    "eps_low": Parameter(
                        default=0.2, source="verl cispo", meaning="lower bound 1-eps_low", high=1.0
                    ),
                    "eps_high": _number(0.2, "verl cispo; TRL bounds r at 5", "bound 1+eps_high"),
                }
            ),
            paper="MiniMax 2025, M1, equations 4-5 (arXiv 2506.13585)",
            link="https://arxiv.org/abs/2506.13585",
        ),
        "sapo": Spec(
            summary=(
                "Soft adaptive policy optimization: a sigmoid gate of the ratio in place of a clip."
                " The weight is 1 on policy and decays smoothly on both sides, faster for A <= 0."
            ),
            formula="loss = -(4/t) sig(t (r-1)) A, t = tau_pos or tau_neg; w = 4 sig (1-sig) r",
            keep=keep_all,
            weight=_sapo_weight,
            loss=_sapo_loss,
            parameters=MappingProxyType(
                {
                    "tau_pos": _number(1.0, SAPO_PAPER, "temperature for A > 0", positive=True),
                    "tau_neg": _number(1.05, SAPO_PAPER, "temperature for A <= 0", positive=True),
                }
            ),
            aggregation="sequence_mean_token_mean",
            denominator="B, then L_i",
            paper="SAPO 2025 (arXiv 2511.20347)",
            link="https://arxiv.org/abs/2511.20347",
        ),
        "maspo": Spec(
            summary=(
                "Mass-adaptive soft policy optimization: trust-region tokens are damped by a"
                " Gaussian of r - 1 whose width grows for tokens that were rare when sampled"
                " (pi_mu^-alpha) and with A > 0, and shrinks with |A| for A < 0. The gate has no"
                " gradient: the official code detaches it. That code also caps the width of the"
                " mass at 10 (`sigma_max`) and the risk factor in [.1, 10]; the paper's formula,"
                " the default here, caps neither."
            ),
            formula="w = r exp(-(r-1)^2 / (2 sigma^2)) in H, else r; sigma = sigma pi_mu^-alpha"
            " (1 + beta A) for A>0, / (1 - beta A) for A<0; loss = -sg(gate) r A",
            keep=keep_all,
            weight=_maspo_weight,
            loss=_maspo_loss,
            parameters=MappingProxyType(
                {
                    "sigma": _number(1.0, MASPO_PAPER, "base width, in units of r", positive=True),
                    "alpha": _number(0.3, MASPO_PAPER, "power of 1/pi_mu"),
                    "beta": _number(0.03, MASPO_PAPER, "widening per unit of advantage"),
                    "sigma_max": Parameter(
                        default=None,
                        source="off in the paper; maspo_sigma_high = 10 in the official code",
                        meaning="cap of sigma pi_mu^-alpha",
                        positive=True,
                    ),
                }
            ),
            needs=("current_logp", "behavior_logp", "advantage", "probabilities"),
            paper="Fu et al. 2026, MASPO (arXiv 2602.17550)",
            link="https://arxiv.org/abs/2602.17550",
        ),
    }
)
