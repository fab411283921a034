"""Objectives whose weight of a token depends on the tokens before it."""

import math
from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Params, Spec, Tokens, detach
from m2po_lab.core.objectives.clip import beyond_clip, clipped_loss
from m2po_lab.core.objectives.order import positions
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import keep_all
from m2po_lab.core.objectives.weights import clipped, weighted_log_loss

UNSETTLED = "Lei, Cheng, Tao 2026 (arXiv 2601.22718); second-hand, see the summary"


def prefix_minimum(tokens: Tokens, values: Array) -> Array:
    """Smallest value among the valid tokens before each token of its row; 0 where there is none.

    A scan in log2(width) steps along the last axis, for which the array API has no function; the
    position in the row guards the ends, so that both layouts go through the same lines.
    """
    xp, axis = tokens.xp, values.ndim - 1
    width, position = values.shape[axis], positions(tokens)
    inf = xp.full_like(values, math.inf)
    best = _shifted(tokens, xp.where(tokens.valid, values, inf), position, 1)
    step = 1
    while step < width:
        best = xp.minimum(best, _shifted(tokens, best, position, step))
        step *= 2
    return xp.where(xp.isfinite(best), best, tokens.zero)


def _shifted(tokens: Tokens, values: Array, position: Array, step: int) -> Array:
    """The value `step` tokens earlier in the same row, inf where there is none."""
    xp, axis = tokens.xp, values.ndim - 1
    inf = xp.full_like(values, math.inf)
    head, body = inf[..., :step], values[..., : max(values.shape[axis] - step, 0)]
    moved = xp.concat([head, body], axis=axis)
    return xp.where(position >= step, moved, inf)


def _bounds(params: Params) -> tuple[float, float, float]:
    return 1 - params["eps_low"], 1 + params["eps_high"], math.inf


def _lowest(tokens: Tokens) -> Array:
    """min_{j<t} d_j, without gradient."""
    return tokens.once("prefix", lambda: prefix_minimum(tokens, detach(tokens.log_ratio)))


def _product(tokens: Tokens) -> Array:
    """Log of the surrogate prefix ratio, d_t + min_{j<t} d_j; the minimum has no gradient."""
    return tokens.log_ratio + _lowest(tokens)


def _keep(tokens: Tokens, params: Params) -> Array:
    """All tokens; under PPO's clip those within the bounds of r_t, or of r_t min_{j<t} r_j."""
    if params["clip"] == "weight":
        return keep_all(tokens, params)
    of = tokens.log_ratio if params["clip"] == "token" else _product(tokens)
    return ~beyond_clip(tokens, of, *_bounds(params))


def _weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Weight w = clip(r_t min_{j<t} r_j), or the product itself under PPO's clip."""
    if params["clip"] == "weight":
        low, high, _ = _bounds(params)
        return clipped(tokens, detach(_product(tokens)), low, high, keep)
    return tokens.exp(_product(tokens), keep)


def _loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-sg(w) A l; or PPO's clipped surrogate of r_t times sg(min_{j<t} r_j), or of the product."""
    if params["clip"] == "weight":
        return weighted_log_loss(tokens, _weight(tokens, params, keep), keep)
    kept = clipped_loss(tokens, keep, _product(tokens), *_bounds(params))
    if params["clip"] == "product":
        return kept
    low = tokens.exp(_lowest(tokens), tokens.valid & ~keep)
    return tokens.xp.where(keep, kept, kept * low)


PREFIX = MappingProxyType(
    {
        "minpro": Spec(
            summary=(
                "Minimum prefix ratio: off policy, the gradient of token t needs the importance"
                " ratio of the whole prefix, prod_{j<=t} r_j, whose variance explodes; MinPRO puts"
                " the smallest ratio seen before t in place of the product over the prefix, so a"
                " token after an abandoned prefix teaches little. As in CISPO the weight is clipped"
                " and the token never dropped. Reading: the objective is second-hand, from a survey"
                " that writes it out; the paper was not at hand in full, no official code was"
                " found, and its bounds could not be read (eps are a public sweep's). Third parties"
                " put PPO's clip on the product (`clip='product'`), which drops nearly every late"
                " token with A < 0 once one earlier token has fallen below 1 - eps_low, or on the"
                " token's own ratio (`clip='token'`)."
            ),
            formula="m_t = min_{j<t} r_j, 1 for a first token; w = clip(r m, 1-eps_low,"
            " 1+eps_high); loss = -sg(w) A l",
            keep=_keep,
            weight=_weight,
            loss=_loss,
            parameters=MappingProxyType(
                {
                    "eps_low": Parameter(
                        default=0.2, source=UNSETTLED, meaning="lower bound 1 - eps_low", high=1.0
                    ),
                    "eps_high": Parameter(
                        default=0.28, source=UNSETTLED, meaning="upper bound 1 + eps_high"
                    ),
                    "clip": Parameter(
                        default="weight",
                        source=UNSETTLED,
                        meaning="the weight, or PPO's clip of r_t min_{j<t} r_j, or of r_t",
                        choices=("weight", "product", "token"),
                    ),
                }
            ),
            scope="sequence",
            paper="Lei, Cheng, Tao 2026, MinPRO (arXiv 2601.22718)",
            link="https://arxiv.org/abs/2601.22718",
        ),
    }
)
