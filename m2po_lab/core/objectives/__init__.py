"""Objectives: what each trust region does to a token. `objective(name, ...)` makes one."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from m2po_lab.core.objectives.aggregation import AGGREGATIONS, Counts
from m2po_lab.core.objectives.applied import Objective
from m2po_lab.core.objectives.base import Spec
from m2po_lab.core.objectives.batch_adaptive import BATCH_ADAPTIVE
from m2po_lab.core.objectives.clip import CLIP
from m2po_lab.core.objectives.correction import CORRECTION
from m2po_lab.core.objectives.covariance import COVARIANCE
from m2po_lab.core.objectives.data_mixing import DATA_MIXING
from m2po_lab.core.objectives.decoupled import DECOUPLED
from m2po_lab.core.objectives.diagnostics import DIAGNOSTICS
from m2po_lab.core.objectives.entropy import ENTROPY
from m2po_lab.core.objectives.mask import MASK
from m2po_lab.core.objectives.parameters import Parameter, merged, unknown
from m2po_lab.core.objectives.penalty import PENALTY
from m2po_lab.core.objectives.plain import PLAIN
from m2po_lab.core.objectives.prefix import PREFIX
from m2po_lab.core.objectives.rejection import REJECTION
from m2po_lab.core.objectives.second_moment import SECOND_MOMENT
from m2po_lab.core.objectives.sequence import SEQUENCE
from m2po_lab.core.objectives.soft import SOFT

__all__ = [
    "AGGREGATIONS",
    "ALIASES",
    "DIAGNOSTICS",
    "OBJECTIVES",
    "Counts",
    "Objective",
    "Parameter",
    "Spec",
    "objective",
]

OBJECTIVES: Mapping[str, Spec] = MappingProxyType(
    {
        **PLAIN,
        **CLIP,
        **SECOND_MOMENT,
        **SEQUENCE,
        **PREFIX,
        **SOFT,
        **PENALTY,
        **CORRECTION,
        **DECOUPLED,
        **REJECTION,
        **MASK,
        **ENTROPY,
        **BATCH_ADAPTIVE,
        **COVARIANCE,
        **DATA_MIXING,
    }
)
"""Name -> what is known about the objective; merged from the literal table of each family."""

ALIASES = MappingProxyType({"grpo": "ppo"})
"""Other names under which an objective is known."""

MAX_LENGTH = Parameter(
    default=None, source="Dr.GRPO: Liu et al. 2025 (arXiv 2503.20783)", positive=True
)


def objective(name: str, aggregation: str = "token_mean", **params: Any) -> Objective:
    """Return an objective by name.

    Args:
        name: a name in OBJECTIVES or ALIASES.
        aggregation: one of AGGREGATIONS; `OBJECTIVES[name].aggregation` is the paper's choice.
        params: by name (`OBJECTIVES[name].parameters`); "constant" also takes `max_length`.

    Raises:
        ValueError: unknown name, aggregation or parameter (with close matches), or a bad value.
    """
    name = ALIASES.get(name, name)
    if name not in OBJECTIVES:
        raise ValueError(unknown("objective", name, (*OBJECTIVES, *ALIASES)))
    if aggregation not in AGGREGATIONS:
        raise ValueError(f"{name}: {unknown('aggregation', aggregation, AGGREGATIONS)}")
    max_length = MAX_LENGTH.check(f"{name}: max_length", params.pop("max_length", None))
    if (max_length is None) == (aggregation == "constant"):
        raise ValueError(
            f"{name}: aggregation={aggregation!r} with max_length={max_length!r};"
            " 'constant' divides by rows * max_length, the others take none"
        )
    spec = OBJECTIVES[name]
    values = merged(name, spec.parameters, params)
    if spec.check is not None:
        spec.check(values)
    return Objective(
        name=name,
        spec=spec,
        params=MappingProxyType(values),
        aggregation=aggregation,
        max_length=max_length,
    )
