"""What a loss function can turn out to be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Variant:
    """One rule that goes by the name of M2PO, as an objective of this package.

    Attributes:
        objective: its name.
        params: beside the budget.
        counts_kept: whether the denominator counts the tokens that stay, and not all valid ones.
        proximal: whether it needs proximal log-probs.
    """

    objective: str
    params: Mapping[str, Any] = field(default_factory=dict)
    counts_kept: bool = False
    proximal: bool = False


AREAL_CLIP = MappingProxyType({"eps_low": 0.2, "eps_high": 0.2, "cap": 5.0})

VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {
        "m2po": Variant("m2po"),
        "m2po_released": Variant("m2po_released"),
        "m2po_areal": Variant("m2po_areal", counts_kept=True),
        "m2po_areal, clipped": Variant("m2po_areal", AREAL_CLIP, counts_kept=True, proximal=True),
        "m2po_all_tokens": Variant("m2po_all_tokens"),
    }
)
"""Name -> variant, the paper's first; "clipped" is AReaL's whole loss: clip .2, cap 5.

Its denominator counts what the selection leaves, clipped tokens included, which no gradient shows.
"""
