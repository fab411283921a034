"""Objectives whose bounds or step size follow a statistic of the whole mini-batch.

They give the same answer only where `keep` sees the whole optimizer mini-batch: solve it there and
pass the mask to `token_loss`.
"""

from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.moments import ess_fraction, sums
from m2po_lab.core.objectives.base import Params, Spec, Tokens, detach
from m2po_lab.core.objectives.clip import log_bound
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import keep_all, ratio_weight
from m2po_lab.core.objectives.sequence import log_product
from m2po_lab.core.objectives.weights import capped, weighted_log_loss

BAPO_PAPER = "Xi et al. 2025 (arXiv 2510.18927), README"


def bapo_highs(params: Params) -> list[float]:
    """Upper bounds in the order tried."""
    highs = [params["high_start"]]
    while highs[-1] < params["high_max"] and params["high_step"] > 0:
        highs.append(min(highs[-1] + params["high_step"], params["high_max"]))
    return highs


def bapo_bounds(tokens: Tokens, params: Params) -> tuple[Array, Array]:
    """Bounds that the search ends at, (low, high), searched once a loss."""
    return tokens.once("bapo_bounds", lambda: searched_bounds(tokens, params))


def searched_bounds(tokens: Tokens, params: Params) -> tuple[Array, Array]:
    """First bounds at which sum_{A>=0} min(r, high) A >= target sum_{A<0} max(r, low) |A|.

    Tried in this order: low raised to its maximum by steps, then high; the last ones where none is
    enough. Negative tokens are not capped at c here, as in the paper's code. Raising low never
    lowers the right side, so a low between its first and last value is never the answer; raising
    high never lowers the left side, so the first high is found by halving. Both hold of the rounded
    sums, whose terms keep their order. Both bounds 0-d.
    """
    xp, adv = tokens.xp, tokens.advantage
    ratio = tokens.exp(detach(tokens.log_ratio), tokens.valid)
    up, down = tokens.valid & (adv >= 0), tokens.valid & (adv < 0)

    def enough(low: Array, high: Array) -> Array:
        gain = xp.sum(xp.where(up, xp.minimum(ratio, high) * adv, tokens.zero))
        loss = xp.sum(xp.where(down, xp.maximum(ratio, low) * -adv, tokens.zero))
        return gain >= params["target_ratio"] * loss

    highs = xp.asarray(bapo_highs(params), dtype=xp.float64, device=adv.device)
    first = xp.full_like(tokens.zero, params["low_start"])
    last = xp.full_like(first, params["low_max" if params["low_step"] > 0 else "low_start"])
    least = xp.astype(xp.zeros_like(first), xp.int64)
    most = xp.full_like(least, highs.shape[0] - 1)
    for _ in range(highs.shape[0].bit_length()):
        middle = (least + most) // 2
        found = enough(last, xp.take(highs, middle[None])[0])
        least, most = xp.where(found, least, middle + 1), xp.where(found, middle, most)
        least = xp.minimum(least, most)
    at_once, high = enough(first, highs[0]), xp.take(highs, most[None])[0]
    return xp.where(at_once, first, last), xp.where(at_once, highs[0], high)


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


def _vcpo_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Weight w = min(S_i, C)."""
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


def _number(default: float, source: str, meaning: str) -> Parameter:
    return Parameter(default=default, source=source, meaning=meaning)


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
            reports=MappingProxyType(
                {
                    "low_bound": "lower ratio bound that the search ended at",
                    "high_bound": "upper ratio bound that the search ended at",
                }
            ),
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
            reports=MappingProxyType(
                {
                    "sequence_ess_fraction": "(sum S)^2 / (B sum S^2) of the raw S_i, in (0, 1]",
                    "learning_rate_scale": "factor of the step size, in (0, 1]",
                }
            ),
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
    }
)
