"""Objectives without a trust region: what the others are measured against."""

from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Params, Spec, Tokens


def keep_all(tokens: Tokens, params: Params) -> Array:
    """Every valid token keeps its gradient."""
    return tokens.valid


def ratio_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Importance ratio, w = r = exp(l - mu), on kept tokens."""
    return tokens.exp(tokens.log_ratio, keep)


def ratio_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-r A on kept tokens, 0 on dropped ones."""
    return -tokens.exp(tokens.log_ratio, keep) * tokens.advantage


def one_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """No importance weight, w = 1."""
    return tokens.xp.ones(tokens.valid.shape, dtype=tokens.xp.float64, device=tokens.valid.device)


def log_prob_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-l A."""
    return -tokens.current * tokens.advantage


PLAIN = MappingProxyType(
    {
        "is": Spec(
            summary=(
                "Importance sampling without a trust region: every token is weighted by how much"
                " likelier the current policy makes it. Unbiased for the token-level surrogate,"
                " with a variance that grows like E[r^2]; on stale data it learns fast, then"
                " collapses."
            ),
            formula="loss = -r A; w = r",
            keep=keep_all,
            weight=ratio_weight,
            loss=ratio_loss,
            paper="Kakade & Langford 2002; the 'no trust region' arm of M2PO (arXiv 2510.01161)",
            link="https://arxiv.org/abs/2510.01161",
        ),
        "reinforce": Spec(
            summary=(
                "The plain policy gradient, as if the tokens were on-policy: no importance"
                " weight. Low variance and, on stale data, biased towards what the old policy"
                " liked."
            ),
            formula="loss = -l A; w = 1",
            keep=keep_all,
            weight=one_weight,
            loss=log_prob_loss,
            needs=("current_logp", "advantage"),
            paper="Williams 1992; Ahmadian et al. 2024 (arXiv 2402.14740)",
            link="https://arxiv.org/abs/2402.14740",
        ),
    }
)
