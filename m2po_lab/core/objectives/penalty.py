"""Objectives that pull the policy back to the one that sampled, whatever the advantage.

The pull is the part of the gradient that A does not multiply; it acts where A = 0 too.
"""

import math
from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Function, Params, Spec, Tokens
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import keep_all, one_weight, ratio_loss, ratio_weight


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


def _number(default: float, source: str, meaning: str) -> Parameter:
    return Parameter(default=default, source=source, meaning=meaning)


PENALTY = MappingProxyType(
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
            aggregation="sequence_mean_token_mean",
            paper="Kimi team 2025, K1.5, equation 3 (arXiv 2501.12599)",
            link="https://arxiv.org/abs/2501.12599",
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
            reports=MappingProxyType({"ratio_variance": "mean (r-1)^2 over valid tokens"}),
            parameters=MappingProxyType(
                {"lam": _number(0.04, "third-party reading; the paper adapts it", "of (r-1)^2")}
            ),
            paper="Luo et al. 2026, R2VPO (arXiv 2601.03320, 2605.26784)",
            link="https://arxiv.org/abs/2601.03320",
        ),
    }
)
