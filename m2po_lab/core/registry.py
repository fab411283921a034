"""The literal tables that the report, notebooks, docs and tests read."""

from m2po_lab.core.objectives import OBJECTIVES
from m2po_lab.core.statistics import STATISTICS

__all__ = ["OBJECTIVES", "STATISTICS"]
