"""Objectives that weight or drop a whole response: one importance ratio a row, or a prefix of it.

Two ratios that must not be mixed: s_i = exp(mean_t d_t), the geometric mean (GSPO, GMPO), whose
bounds are of the order 1e-4, and S_i = exp(sum_t d_t), the exact weight of the response (VESPO).
Row sums are taken in log space; nothing is exponentiated before the row is reduced.
"""

from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.base import Params, Spec, Tokens, detach
from m2po_lab.core.objectives.clip import beyond_clip, clipped_loss, log_bound
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.plain import keep_all

GSPO_PAPER = "Zheng et al. 2025 (arXiv 2507.18071), section 5.1"
GMPO_PAPER = "Zhao et al. 2025 (arXiv 2507.20673), section 4"
VESPO_PAPER = "VESPO 2026 (arXiv 2602.10693); TRL vespo_* defaults"


def log_geometric(tokens: Tokens) -> Array:
    """Log s_i = mean over the row's valid tokens of d, at every token."""
    return tokens.spread(tokens.row_mean(tokens.log_ratio))


def log_product(tokens: Tokens) -> Array:
    """Log S_i = sum over the row's valid tokens of d, at every token."""
    return tokens.spread(tokens.batch.row_sum(tokens.log_ratio))


def row_advantage(tokens: Tokens) -> Array:
    """Mean of A over the row's valid tokens, at every token: the advantage of the response."""
    return tokens.spread(tokens.row_mean(tokens.advantage))


def _gspo_keep(tokens: Tokens, params: Params) -> Array:
    """Rows within their bound: not (A_i>0, s>1+eps_high) and not (A_i<0, s<1-eps_low)."""
    s, adv = log_geometric(tokens), row_advantage(tokens)
    too_high = (adv > 0) & (s > log_bound(1 + params["eps_high"]))
    return ~(too_high | ((adv < 0) & (s < log_bound(1 - params["eps_low"]))))


def _gspo_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Weight w = s_i on kept rows."""
    return tokens.exp(log_geometric(tokens), keep)


def _gspo_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-s_i A_i on every token of a kept row, -bound A_i on a dropped one."""
    xp, adv = tokens.xp, row_advantage(tokens)
    high = xp.full_like(adv, 1 + params["eps_high"])
    bound = xp.where(adv > 0, high, xp.full_like(adv, 1 - params["eps_low"]))
    return -xp.where(keep, tokens.exp(log_geometric(tokens), keep), bound) * adv


def _gspo_penalty(tokens: Tokens, params: Params, keep: Array) -> Array:
    """s_i (A_i - A_t): what is left where A varies within a row, whose mean is what counts."""
    return tokens.exp(log_geometric(tokens), keep) * (row_advantage(tokens) - tokens.advantage)


def _gspo_token_bounds(params: Params) -> tuple[float, float, float]:
    return 1 - params["eps_low"], 1 + params["eps_high"], float("inf")


def _gspo_token_keep(tokens: Tokens, params: Params) -> Array:
    """Tokens whose row ratio is within the bound that the token's own advantage sets."""
    return ~beyond_clip(tokens, log_geometric(tokens), *_gspo_token_bounds(params))


def _gspo_token_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Clipped surrogate of s_{i,t} = sg(s_i) pi_t / sg(pi_t)."""
    fixed = detach(log_geometric(tokens)) + (tokens.current - detach(tokens.current))
    return clipped_loss(tokens, keep, fixed, *_gspo_token_bounds(params))


def _gmpo_keep(tokens: Tokens, params: Params) -> Array:
    """Tokens within the log-ratio clip: not (A>0, d>eps_high) and not (A<0, d<-eps_low)."""
    d, adv = tokens.log_ratio, tokens.advantage
    too_high = (adv > 0) & (d > params["eps_high"])
    return ~(too_high | ((adv < 0) & (d < -params["eps_low"])))


def _gmpo_log_ratio(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Row mean of the clipped d, at every token; tokens with A = 0 count as d = 0."""
    xp, d, adv = tokens.xp, tokens.log_ratio, tokens.advantage
    high = xp.full_like(adv, params["eps_high"])
    clipped = xp.where(
        keep, d, xp.where(adv > 0, high, xp.full_like(adv, -float(params["eps_low"])))
    )
    return tokens.spread(tokens.row_mean(xp.where(adv == 0, tokens.zero, clipped)))


def _gmpo_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Weight w = exp(row mean of the clipped d) on tokens whose d was not clipped."""
    return tokens.exp(_gmpo_log_ratio(tokens, params, keep), keep)


def _gmpo_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-A_i exp(row mean of the clipped d), the same at every token of the row."""
    ratio = tokens.exp(_gmpo_log_ratio(tokens, params, keep), tokens.valid)
    return -ratio * row_advantage(tokens)


def _gmpo_penalty(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Weight times (A_i - A_t): what is left where A varies within a row."""
    some = keep & (tokens.advantage != 0)
    ratio = tokens.exp(_gmpo_log_ratio(tokens, params, keep), some)
    return ratio * (row_advantage(tokens) - tokens.advantage)


def _vespo_weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Weight w = exp(lam + k log S - lam S), 1 at S = 1; (k, lam) by the sign of A."""
    xp = tokens.xp
    log_s, like = log_product(tokens), tokens.advantage
    up = tokens.advantage >= 0
    k = xp.where(up, xp.full_like(like, params["k_pos"]), xp.full_like(like, params["k_neg"]))
    lam = xp.where(up, xp.full_like(like, params["lam_pos"]), xp.full_like(like, params["lam_neg"]))
    return tokens.exp(lam + k * log_s - lam * tokens.exp(log_s, tokens.valid), keep)


def _vespo_loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    """-sg(w) A l."""
    return -detach(_vespo_weight(tokens, params, keep)) * tokens.advantage * tokens.current


def _vespo(default: float, meaning: str) -> Parameter:
    return Parameter(default=default, source=VESPO_PAPER, meaning=meaning, positive=True)


def _clip(default: float, source: str, meaning: str, high: float = float("inf")) -> Parameter:
    return Parameter(default=default, source=source, meaning=meaning, high=high)


GSPO_CLIP = MappingProxyType(
    {
        "eps_low": _clip(3e-4, GSPO_PAPER, "lower bound 1 - eps_low of s_i", 1.0),
        "eps_high": _clip(4e-4, GSPO_PAPER, "upper bound 1 + eps_high of s_i"),
    }
)

SEQUENCE = MappingProxyType(
    {
        "gspo": Spec(
            summary=(
                "Group sequence policy optimization: the ratio of a response is the geometric mean"
                " of its token ratios, and the clip keeps or drops the response as a whole. The"
                " gradient flows through that mean (as in slime and AReaL). The advantage is the"
                " response's: the mean of A over the row, as in AReaL; where A is constant in a row"
                " `gspo_token` has the same gradient."
            ),
            formula="s = exp(mean_t d); loss = -min(s A, clip(s, 1-eps_low, 1+eps_high) A); w = s",
            keep=_gspo_keep,
            weight=_gspo_weight,
            loss=_gspo_loss,
            penalty=_gspo_penalty,
            parameters=GSPO_CLIP,
            scope="sequence",
            denominator="B, then L_i",
            aggregation="sequence_mean_token_mean",
            paper="Zheng et al. 2025, GSPO (arXiv 2507.18071)",
            link="https://arxiv.org/abs/2507.18071",
        ),
        "gspo_token": Spec(
            summary=(
                "GSPO with per-token advantages: every token carries the value of its row's ratio"
                " but the gradient of its own log-prob, so the clip may drop some tokens of a row"
                " and keep others. This is what verl's and Tinker's gspo compute. verl caps log s"
                " at 10, beyond which it has no gradient; here it has."
            ),
            formula="s_t = sg(s) pi_t / sg(pi_t); loss = -min(s_t A_t, clip(s_t) A_t); w = s",
            keep=_gspo_token_keep,
            weight=_gspo_weight,
            loss=_gspo_token_loss,
            parameters=GSPO_CLIP,
            scope="sequence",
            denominator="B, then L_i",
            aggregation="sequence_mean_token_mean",
            paper="Zheng et al. 2025, GSPO section 4.3 (arXiv 2507.18071)",
            link="https://arxiv.org/abs/2507.18071",
        ),
        "gmpo": Spec(
            summary=(
                "Geometric-mean policy optimization: clip each token's log-ratio on the side that"
                " its advantage pushes, average, exponentiate. One wild token moves the response's"
                " weight by its clipped share only. A clipped token has no gradient of its own, but"
                " its clipped value stays in the mean. The loss of a row uses the mean of A."
            ),
            formula="ratio = exp(mean_t clip(d_t)); loss_i = -A_i ratio; w = ratio where unclipped",
            keep=_gmpo_keep,
            weight=_gmpo_weight,
            loss=_gmpo_loss,
            penalty=_gmpo_penalty,
            parameters=MappingProxyType(
                {
                    "eps_low": _clip(0.4, GMPO_PAPER, "d below -eps_low is clipped for A<0, nats"),
                    "eps_high": _clip(0.4, GMPO_PAPER, "d above eps_high is clipped for A>0, nats"),
                }
            ),
            scope="sequence",
            denominator="B * L_i",
            aggregation="sequence_mean",
            paper="Zhao et al. 2025, GMPO (arXiv 2507.20673)",
            link="https://arxiv.org/abs/2507.20673",
        ),
        "vespo": Spec(
            summary=(
                "Variational sequence-level soft policy optimization: a gamma-shaped weight of the"
                " exact response ratio S that is 1 on policy, falls to 0 for S -> 0 and for large"
                " S, and is sharper for bad responses. No token is dropped. Public code clamps"
                " log S to [log 1e-8, 20], where the weight is 0 to 1e-14 anyway; here it is not."
            ),
            formula="S = exp(sum_t d); w = exp(lam + k log S - lam S); loss = -sg(w) A l",
            keep=keep_all,
            weight=_vespo_weight,
            loss=_vespo_loss,
            parameters=MappingProxyType(
                {
                    "k_pos": _vespo(2.0, "power of S for A >= 0"),
                    "lam_pos": _vespo(3.0, "decay in S for A >= 0"),
                    "k_neg": _vespo(3.0, "power of S for A < 0"),
                    "lam_neg": _vespo(2.0, "decay in S for A < 0"),
                }
            ),
            scope="sequence",
            paper="VESPO 2026 (arXiv 2602.10693)",
            link="https://arxiv.org/abs/2602.10693",
        ),
    }
)
