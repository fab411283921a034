"""Loss modes: which objective of the core each one runs, and over what its mask is decided."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from m2po_lab.core import OBJECTIVES

PREFIX = "lab_"
"""`lab_<objective>` is a loss mode for every objective of the core."""


@dataclass(frozen=True)
class Mode:
    """One loss mode.

    Attributes:
        objective: name in OBJECTIVES.
        selection: "mini-batch": the engine solves the mask over all micro-batches and ranks;
            "micro-batch": the mask is decided anew in each micro-batch, because that is what the
            reproduced code does; "rows": a token's fate depends on its own row only, so the split
            does not matter; "gathered": it depends on the whole mini-batch, whose rows every rank
            gathers and judges before the update.
    """

    objective: str
    selection: str


def _selection(name: str) -> str:
    if name == "m2po":
        return "mini-batch"
    if name in ("m2po_released", "m2po_areal"):
        return "micro-batch"
    return "rows" if OBJECTIVES[name].scope in ("token", "sequence") else "gathered"


MODES: Mapping[str, Mode] = MappingProxyType(
    {name: Mode(name, _selection(name)) for name in ("m2po", "m2po_released", "m2po_areal")}
    | {PREFIX + name: Mode(name, _selection(name)) for name in OBJECTIVES}
)
"""Value of `actor.policy_loss.loss_mode` -> what it runs."""
