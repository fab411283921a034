"""Objectives that shrink a token's weight instead of dropping it."""

import math
from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Function, Params, Spec, Tokens, detach
from m2po_lab.core.objectives.clip import log_bound
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import keep_all, one_weight, ratio_loss, ratio_weight

SATURATED = 40.0
"""Beyond this a sigmoid is 0 or 1 in float64; its argument is cut there so that exp stays finite."""


def weighted_log_loss(tokens: Tokens, weight: Array, keep: Array) -> Array:
    """-sg(w) A l, the policy gradient with a fixed weight; 0 on dropped tokens."""
    loss = -detach(weight) * tokens.advantage * tokens.current
    return tokens.xp.where(keep, loss, tokens.zero)


def _pull(coefficient: str) -> tuple[Function, Function]:
    """Penalty and loss of -A l + c/2 d^2, with c the parameter of that name."""

    def penalty(tokens: Tokens, params: Params, keep: Array) -> Array:
        """-c d: pulls the log-ratio back to 0 whatever the advantage."""
        return -params[coefficient] * tokens.log_ratio

    def loss(tokens: Tokens, params: Params, keep: Array) -> Array:
        """-A l + c/2 d^2."""
        d = tokens.log_ratio
        return -tokens.advantage * tokens.current + params[coefficient] / 2 * d * d

    return penalty, loss


_DRO_PENALTY, _DRO_LOSS = _pull("beta")
_KIMI_PENALTY, _KIMI_LOSS = _pull("tau")


def _cispo_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """w = clip(r, 1 - eps_low, 1 + eps_high)."""
    xp, d = tokens.xp, tokens.log_ratio
    high, low = 1 + params["eps_high"], 1 - params["eps_low"]
    above, below = d > log_bound(high), d < log_bound(low)
    inside = tokens.exp(d, keep & ~above & ~below)
    bound = xp.where(above, xp.full_like(d, high), xp.full_like(d, low))
    return xp.where(above | below, bound, inside)


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
    """w = 4 sig (1 - sig) r: 1 on policy, and 0 far above it."""
    ratio, tau, gate = _sapo_gate(tokens, params, keep)
    open_ = tokens.xp.abs(tau * (ratio - 1)) < SATURATED
    return tokens.xp.where(open_, 4 * gate * (1 - gate) * ratio, tokens.zero)


def _sapo_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-(4 / temperature) sigmoid(temperature (r - 1)) A."""
    _, tau, gate = _sapo_gate(tokens, params, keep)
    return -4 / tau * gate * tokens.advantage


def _maspo_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """w = r exp(-(r-1)^2 / (2 sigma^2)) for trust-region tokens, r for the others."""
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


def _r2vpo_penalty(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-2 lam r (r - 1)."""
    ratio = tokens.exp(tokens.log_ratio, keep)
    return -2 * params["lam"] * ratio * (ratio - 1)


def _r2vpo_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-(r A - lam (r - 1)^2)."""
    excess = tokens.exp(tokens.log_ratio, keep) - 1
    return ratio_loss(tokens, params, keep) + params["lam"] * excess * excess


def _r2vpo_report(tokens: Tokens, params: Params, keep: Array) -> dict[str, Array]:
    """ratio_variance: mean (r-1)^2 over valid tokens, what dual ascent on lam compares."""
    xp = tokens.xp
    excess = xp.where(tokens.valid, tokens.exp(tokens.log_ratio, tokens.valid) - 1, tokens.zero)
    n = xp.astype(xp.sum(xp.astype(tokens.valid, xp.int64)), xp.float64)
    mean = xp.sum(excess * excess) / xp.where(n > 0, n, xp.ones_like(n))
    return {"ratio_variance": xp.where(n > 0, mean, xp.full_like(n, math.nan))}


def _number(default: float, source: str, meaning: str, *, positive: bool = False) -> Parameter:
    return Parameter(default=default, source=source, meaning=meaning, positive=positive)


MASPO_PAPER = "Fu et al. 2026 (arXiv 2602.17550), official README"
SAPO_PAPER = "SAPO 2025 (arXiv 2511.20347), section 4"
_LOG_NEEDS = ("current_logp", "behavior_logp", "advantage")

SOFT = MappingProxyType(
    {
        "dro": Spec(
            summary=(
                "Direct reward optimization: the plain policy gradient plus a quadratic pull of the"
                " log-ratio towards 0. No importance weight and no mask: off-policy data are used"
                " as they are, and the pull alone keeps the policy near its data. The pull acts"
                " where A = 0 too."
            ),
            formula="loss = -A l + beta/2 d^2; -D dLoss/dl = A - beta d",
            keep=keep_all,
            weight=one_weight,
            loss=_DRO_LOSS,
            penalty=_DRO_PENALTY,
            parameters=MappingProxyType(
                {"beta": _number(0.05, "Tinker loss 'dro'", "strength of the pull, 1/nats")}
            ),
            needs=_LOG_NEEDS,
            paper="Richemond et al. 2024, DRO (arXiv 2405.19107)",
            link="https://arxiv.org/abs/2405.19107",
        ),
        "kimi": Spec(
            summary=(
                "Kimi K1.5's mirror-descent gradient: the policy gradient plus tau times the"
                " log-ratio as a pull back. The same shape as `dro`, with its own default. The"
                " report writes the square over whole responses; public code (ROLL) and this one"
                " take it per token, which agrees in rows of one token only."
            ),
            formula="loss = -A l + tau/2 d^2; -D dLoss/dl = A - tau d",
            keep=keep_all,
            weight=one_weight,
            loss=_KIMI_LOSS,
            penalty=_KIMI_PENALTY,
            parameters=MappingProxyType(
                {"tau": _number(0.1, "ROLL kimi15_tau", "strength of the pull, 1/nats")}
            ),
            needs=_LOG_NEEDS,
            aggregation="sequence_mean_token_mean",
            paper="Kimi team 2025, K1.5, equation 3 (arXiv 2501.12599)",
            link="https://arxiv.org/abs/2501.12599",
        ),
        "cispo": Spec(
            summary=(
                "Clip the importance weight, never the token: the weight is bounded and fixed, the"
                " gradient flows through log pi, so rare tokens that PPO would drop keep teaching"
                " with a bounded weight. MiniMax and ScaleRL bound it from above only (eps_low = 1)."
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
            needs=(*_LOG_NEEDS, "probabilities"),
            paper="Fu et al. 2026, MASPO (arXiv 2602.17550)",
            link="https://arxiv.org/abs/2602.17550",
        ),
        "r2vpo": Spec(
            summary=(
                "Ratio-variance regularised policy optimization: no clip, but a penalty on"
                " (r - 1)^2, the variance of the ratio around its expectation 1, so that a large"
                " ratio pushes back in proportion. The paper adapts lam by dual ascent on a"
                " variance constraint, whose bound could not be read; the diagnostic"
                " `ratio_variance` is what that ascent compares. lam is fixed within a step. The"
                " loss is the third-party reading r A - lam (r-1)^2; no official code was found."
            ),
            formula="loss = -(r A - lam (r-1)^2); w = r, penalty -2 lam r (r-1)",
            keep=keep_all,
            weight=ratio_weight,
            loss=_r2vpo_loss,
            penalty=_r2vpo_penalty,
            report=_r2vpo_report,
            parameters=MappingProxyType(
                {"lam": _number(0.04, "third-party reading; the paper adapts it", "penalty")}
            ),
            paper="Luo et al. 2026, R2VPO (arXiv 2601.03320, 2605.26784)",
            link="https://arxiv.org/abs/2601.03320",
        ),
    }
)
