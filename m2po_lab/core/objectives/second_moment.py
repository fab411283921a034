"""M2PO and three rules that go by its name: bound the second moment of the log-ratio, M2 = E d^2.

The variants differ in what is selected over, in the rule, in what a dropped token contributes and
in the denominator; each reproduces a public implementation, so a run made with it can be explained.
The masks come from `m2po_lab.core.selection`.
"""

import math
from types import MappingProxyType

from m2po_lab.core import selection, selection_variants
from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Parameter, Params, Spec, Tokens
from m2po_lab.core.objectives.clip import beyond_clip, clipped_loss, log_bound
from m2po_lab.core.objectives.plain import ratio_loss, ratio_weight

PAPER = "Zheng, Zhao, Chen 2025, Prosperity before collapse (arXiv 2510.01161, ICLR 2026)"
LINK = "https://arxiv.org/abs/2510.01161"
COMPILE_NOTE = (
    "the selection sorts and searches on the host, outside any graph; solve the mask first and"
    " compile token_loss(batch, keep)"
)
BUDGET = Parameter(
    default=0.04,
    source="M2PO (arXiv 2510.01161), section 5: 0.04 in every experiment",
    meaning="bound on M2 of the selected tokens, nats^2",
)


def keep_m2po(tokens: Tokens, params: Params) -> Array:
    """Valid tokens but the largest of H, until the mean d^2 of the rest of H is within budget."""
    return selection.keep_m2po(tokens.batch, params["budget"])


def keep_all_tokens(tokens: Tokens, params: Params) -> Array:
    """Valid tokens but the largest of H, until the mean d^2 of all that stay is below budget."""
    return selection_variants.keep_all_tokens(tokens.batch, params["budget"])


def m2po_report(tokens: Tokens, params: Params, keep: Array) -> dict[str, Array]:
    """The largest d^2 of H that keeps its gradient; inf where none was dropped."""
    xp, active = tokens.xp, selection.eligible(tokens.batch)
    square = xp.where(active & keep, tokens.log_ratio**2, tokens.zero)
    largest = xp.max(xp.concat([xp.reshape(square, (-1,)), xp.reshape(tokens.zero, (1,))]))
    inf = xp.full_like(largest, math.inf)
    return {"threshold": xp.where(xp.any(active & ~keep), largest, inf)}


def released(tokens: Tokens, params: Params) -> selection_variants.Released:
    """What the authors' code decides: mask and clip range; solved once a loss."""
    limits = params["budget"], params["miniclip_low"], params["miniclip_high"]
    return tokens.once("released", lambda: selection_variants.keep_released(tokens.batch, *limits))


def keep_released(tokens: Tokens, params: Params) -> Array:
    """Tokens with a gradient in the authors' code: not clipped, and A is not 0."""
    return released(tokens, params).keep & (tokens.advantage != 0)


def released_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-min(r A, clip(r) A) with the clip range that the authors' code finds."""
    clip = released(tokens, params)
    bounds = 1 - clip.clip_low, 1 + clip.clip_high, math.inf
    return clipped_loss(tokens, keep, tokens.log_ratio, *bounds)


def released_report(tokens: Tokens, params: Params, keep: Array) -> dict[str, Array]:
    """The clip range and the two second moments as the authors' code logs them."""
    clip = released(tokens, params)
    values = {
        "clip_low": clip.clip_low,
        "clip_high": clip.clip_high,
        "released_m2_before": clip.m2_before,
        "released_m2_after": clip.m2_after,
    }
    return {name: tokens.zero + value for name, value in values.items()}


def selected_areal(tokens: Tokens, params: Params) -> Array:
    """Tokens that AReaL's selection leaves: the denominator counts these; solved once a loss."""
    return tokens.once(
        "areal", lambda: selection_variants.keep_areal(tokens.batch, params["budget"])
    )


def counted_areal(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Tokens that AReaL's selection leaves, whether PPO's clip binds on them or not."""
    return keep if params["eps_low"] is None else selected_areal(tokens, params)


def keep_areal(tokens: Tokens, params: Params) -> Array:
    """Selected tokens, and with eps and cap those within PPO's clip on rho and with b <= cap."""
    keep = selected_areal(tokens, params)
    if params["eps_low"] is None:
        return keep
    rho = tokens.ratio("current/proximal")
    return keep & ~beyond_clip(tokens, rho, *areal_bounds(params)) & within_cap(tokens, params)


def areal_bounds(params: Params) -> tuple[float, float, float]:
    """(1 - eps_low, 1 + eps_high, no dual clip)."""
    return 1 - params["eps_low"], 1 + params["eps_high"], math.inf


def within_cap(tokens: Tokens, params: Params) -> Array:
    """Tokens with behavior correction b = p / mu at most cap."""
    if params["cap"] is None:
        return tokens.valid
    return tokens.ratio("proximal/behavior") <= log_bound(params["cap"])


def areal_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-r A on kept tokens; with eps b times PPO's loss on rho for every selected token."""
    if params["eps_low"] is None:
        return ratio_loss(tokens, params, keep)
    counted = selected_areal(tokens, params) & within_cap(tokens, params)
    surrogate = clipped_loss(tokens, keep, tokens.ratio("current/proximal"), *areal_bounds(params))
    return surrogate * tokens.exp(tokens.ratio("proximal/behavior"), counted)


def check_areal(params: Params) -> None:
    """Raise ValueError where only a part of AReaL's clip is given."""
    if (params["eps_low"] is None) != (params["eps_high"] is None) or (
        params["eps_low"] is None and params["cap"] is not None
    ):
        given = ", ".join(f"{k}={params[k]}" for k in ("eps_low", "eps_high", "cap"))
        raise ValueError(
            f"m2po_areal: {given}; pass eps_low and eps_high together (and cap with them) for"
            " AReaL's decoupled PPO loss, or none of them for its selection alone"
        )


def needs_areal(params: Params) -> tuple[str, ...]:
    """Proximal log-probs are needed for the clip only; the selection takes the current ones."""
    return () if params["eps_low"] is None else ("proximal_logp",)


def optional(source: str, meaning: str, high: float = math.inf) -> Parameter:
    """A parameter that is off by default."""
    return Parameter(default=None, source=source, meaning=meaning, high=high)


RELEASED_SOURCE = "what the authors' launcher passes (Infini-AI-Lab/M2PO af54a3e); off"
AREAL_SOURCE = "off: the selection alone; AReaL's recipes use eps 0.2 and a cap of 5"

SECOND_MOMENT = MappingProxyType(
    {
        "m2po": Spec(
            summary=(
                "M2PO: among the tokens that a trust region is about, H (A > 0 with a ratio"
                " above 1, or A < 0 with one below 1), drop those with the largest squared"
                " log-ratio until the mean over the rest of H is within the budget. The bound is on"
                " the batch, not on each token, so stale data loses a few outliers instead of"
                " every informative token. Tokens outside H are never dropped, and dropped ones"
                " stay in the denominator. The mask is solved over the optimizer mini-batch, all"
                " ranks."
            ),
            formula="loss = -M r A; w = r on kept tokens; M from Algorithm 1, mean_H d^2 <= budget",
            keep=keep_m2po,
            weight=ratio_weight,
            loss=ratio_loss,
            report=m2po_report,
            reports=MappingProxyType(
                {
                    "threshold": "largest d^2 of H that keeps its gradient, nats^2; 0 if none does,"
                    " inf if none was dropped"
                }
            ),
            parameters=MappingProxyType({"budget": BUDGET}),
            scope="mini-batch",
            paper=PAPER,
            link=LINK,
            compile_note=COMPILE_NOTE,
        ),
        "m2po_released": Spec(
            summary=(
                "The authors' released code: a water-filling cap on d^2 over the trust-region"
                " tokens (region from the ratio as computed, side from the sign of the row's"
                " first advantage) becomes a PPO clip range for all tokens. It clips more than"
                " the paper's Algorithm 1 and depends on the micro-batch split. A token with A ="
                " 0 counts as not kept, as in the reference masks; it has no gradient either way."
            ),
            formula="loss = -min(r A, clip(r, e^-cap, e^cap) A); w = r where not clipped",
            keep=keep_released,
            weight=ratio_weight,
            loss=released_loss,
            report=released_report,
            reports=MappingProxyType(
                {
                    "clip_low": "1 - lower ratio bound; 1 for no bound",
                    "clip_high": "upper ratio bound - 1; 99999 for no bound",
                    "released_m2_before": "M2 of its trust-region tokens, nats^2; 0 for none",
                    "released_m2_after": "the same after its cap, nats^2, as that code logs it",
                }
            ),
            keep_checks_finite=False,
            parameters=MappingProxyType(
                {
                    "budget": BUDGET,
                    "miniclip_low": optional(
                        RELEASED_SOURCE, "the lower bound is at most 1 - miniclip_low", high=1.0
                    ),
                    "miniclip_high": optional(
                        RELEASED_SOURCE, "the upper bound is at least 1 + miniclip_high"
                    ),
                }
            ),
            scope="mini-batch",
            paper=PAPER + "; code Infini-AI-Lab/M2PO af54a3e",
            link="https://github.com/Infini-AI-Lab/M2PO",
            compile_note=COMPILE_NOTE,
        ),
        "m2po_areal": Spec(
            summary=(
                "AReaL's M2PO: drop the valid tokens with the largest (log b)^2, b = proximal /"
                " behavior, whatever their advantage, until the mean over the rest is below the"
                " budget; at least one stays. Without proximal log-probs the current ones stand"
                " in. The loss is divided by the tokens that stay, so a small mask means larger"
                " steps. With eps_low, eps_high and cap the loss is AReaL's decoupled PPO as"
                " well."
            ),
            formula="loss = -M r A, with eps -M b min(rho A, clip(rho) A), b <= cap; w = rho b = r",
            keep=keep_areal,
            weight=ratio_weight,
            loss=areal_loss,
            counted=counted_areal,
            check=check_areal,
            keep_checks_finite=False,
            parameters=MappingProxyType(
                {
                    "budget": BUDGET,
                    "eps_low": optional(AREAL_SOURCE, "PPO's lower bound on rho", high=1.0),
                    "eps_high": optional(AREAL_SOURCE, "PPO's upper bound on rho"),
                    "cap": optional(AREAL_SOURCE, "largest b that keeps its gradient"),
                }
            ),
            scope="mini-batch",
            needs_for=needs_areal,
            ratio="proximal/behavior",
            denominator="tokens that the selection leaves",
            paper=PAPER + "; code inclusionAI/AReaL 4aef98d",
            link="https://github.com/inclusionAI/AReaL",
            compile_note=COMPILE_NOTE,
        ),
        "m2po_all_tokens": Spec(
            summary=(
                "A SkyRL fork's M2PO: only trust-region tokens can be dropped, but the mean that"
                " must be below the budget runs over all valid tokens that stay. Tokens outside"
                " the region can then force the whole region out."
            ),
            formula="loss = -M r A; w = r on kept tokens; M: mean over kept valid tokens < budget",
            keep=keep_all_tokens,
            weight=ratio_weight,
            loss=ratio_loss,
            keep_checks_finite=False,
            parameters=MappingProxyType({"budget": BUDGET}),
            scope="mini-batch",
            paper=PAPER + "; variant of a SkyRL fork",
            link=LINK,
            compile_note=COMPILE_NOTE,
        ),
    }
)
