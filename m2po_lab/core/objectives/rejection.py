"""Masked importance sampling: reject tokens or whole responses by a measure of their ratio.

verl, TRL, AReaL and slime offer many such gates. They differ in four choices, which are the
parameters here: what is measured (`metric`), over which tokens (`level`), what weight the kept ones
get (`cap`), and whether the rejected ones stay in the denominator (`denominator`).
"""

import math
from types import MappingProxyType

from m2po_lab.core.arrays import Array
from m2po_lab.core.moments import k3_terms
from m2po_lab.core.objectives.base import Params, Spec, Tokens
from m2po_lab.core.objectives.clip import log_bound
from m2po_lab.core.objectives.correction import (
    PROXIMAL,
    corrected_loss,
    corrected_weight,
    correction_log_ratio,
    needs_proximal,
    within_proximal_clip,
)
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.tokens import RATIO_LIMIT
from m2po_lab.core.objectives.weights import capped

LEVELS = ("token", "sequence_product", "sequence_geometric", "sequence_max")
METRICS = ("ratio", "k1", "k2", "k3")
MIS_SOURCE = "verl rollout_rs_threshold 0.5_5.0; TRL vllm_importance_sampling_mode"


def _per_level(tokens: Tokens, values: Array, level: str) -> Array:
    """The value itself, or its row's sum, mean or maximum, at every token."""
    if level == "token":
        return values
    if level == "sequence_product":
        return tokens.spread(tokens.batch.row_sum(values))
    if level == "sequence_geometric":
        return tokens.spread(tokens.row_mean(values))
    xp = tokens.xp
    low = xp.full_like(values, -math.inf)
    padded = tokens.batch.to_padded(xp.where(tokens.valid, values, low), fill=-math.inf)
    if 0 in padded.shape:
        return values
    return tokens.spread(xp.max(padded, axis=1))


def inside_gate(tokens: Tokens, params: Params) -> Array:
    """Tokens that the gate leaves.

    ratio: low <= ratio <= high. k1: low <= exp(-d) <= high, verl's sign, which inverts asymmetric
    bounds: "0.5_5.0" keeps ratios in [.2, 2]. k2, k3: d^2/2 or e^d - 1 - d at most `high`, in nats.
    """
    d, level = correction_log_ratio(tokens, params), params["level"]
    metric = params["metric"]
    if metric in ("ratio", "k1"):
        signed = _per_level(tokens, d if metric == "ratio" else -d, level)
        return (signed >= log_bound(params["low"])) & (signed <= log_bound(params["high"]))
    terms = d * d / 2 if metric == "k2" else k3_terms(tokens.xp.clip(d, -math.inf, RATIO_LIMIT))
    return _per_level(tokens, terms, level) <= params["high"]


def _correction(tokens: Tokens, params: Params, where: Array) -> Array:
    """Weight of the tokens on `where`: min(b, cap) where there is a cap, else the gate's ratio."""
    d = correction_log_ratio(tokens, params)
    if params["cap"] is not None:
        return capped(tokens, d, params["cap"], where)
    level = "token" if params["level"] == "sequence_max" else params["level"]
    return tokens.exp(_per_level(tokens, d, level), where)


def _keep(tokens: Tokens, params: Params) -> Array:
    return inside_gate(tokens, params) & within_proximal_clip(tokens, params)


def _weight(tokens: Tokens, params: Params, keep: Array) -> Array:
    return corrected_weight(tokens, params, keep, _correction(tokens, params, keep))


def _loss(tokens: Tokens, params: Params, keep: Array) -> Array:
    inside = tokens.valid & inside_gate(tokens, params)
    return corrected_loss(tokens, params, keep, _correction(tokens, params, inside))


def _counted(tokens: Tokens, params: Params, keep: Array) -> Array:
    """Valid tokens, or only those inside the gate."""
    return tokens.valid if params["denominator"] == "valid" else inside_gate(tokens, params)


REJECTION = MappingProxyType(
    {
        "mis": Spec(
            summary=(
                "Masked importance sampling: tokens, or whole responses, whose ratio to the"
                " sampler leaves a gate are rejected; the others keep that ratio as their weight"
                " (`cap` puts a truncated token weight in its place). Level and metric cover"
                " verl's rejection modes: token_k1 ... seq_max_k3 are metric k1-k3 at level token,"
                " sequence_product (sum), sequence_geometric (mean) or sequence_max. Traps: verl's"
                " k1 compares exp(-d), which inverts asymmetric bounds; verl divides by the tokens"
                " that are left (`denominator='kept'`), TRL, NeMo-RL, AReaL and slime by all."
            ),
            formula="w = ratio (rho within PPO's clip) inside the gate, else 0",
            keep=_keep,
            weight=_weight,
            loss=_loss,
            counted=_counted,
            parameters=MappingProxyType(
                {
                    "level": Parameter(
                        default="sequence_product",
                        source="Liu, Li et al. 2025, Seq-MIS",
                        meaning="what is measured and rejected as one",
                        choices=LEVELS,
                    ),
                    "metric": Parameter(
                        default="ratio",
                        source="Liu, Li et al. 2025, Seq-MIS",
                        meaning="ratio; k1 (verl's inverted sign); k2, k3: at most `high` nats",
                        choices=METRICS,
                    ),
                    "low": Parameter(
                        default=0.5, source=MIS_SOURCE, meaning="smallest ratio (k1: of exp(-d))"
                    ),
                    "high": Parameter(
                        default=5.0, source=MIS_SOURCE, meaning="largest value", positive=True
                    ),
                    "cap": Parameter(
                        default=None,
                        source="off; verl combines its rejection with token TIS",
                        meaning="truncated token weight min(b, cap) in place of the gate's ratio",
                        positive=True,
                    ),
                    "denominator": Parameter(
                        default="valid",
                        source="TRL, NeMo-RL, AReaL, slime; verl: kept",
                        meaning="tokens that D counts",
                        choices=("valid", "kept"),
                    ),
                    **PROXIMAL,
                }
            ),
            needs_for=needs_proximal,
            scope="sequence",
            denominator="N, all valid tokens; denominator='kept': those inside the gate",
            paper="Liu, Li et al. 2025, When speed kills stability; verl rollout correction",
            link="https://richardli.xyz/rl-collapse",
        ),
    }
)
