"""Importance-weight statistics and objectives: numpy or torch arrays in, the same kind out.

No I/O, no printing, no configuration; imports numpy and array-api-compat only.
"""

from m2po_lab.core.batch import RATIOS, TokenBatch
from m2po_lab.core.histogram import Histogram, histogram
from m2po_lab.core.moments import Sums, k3_terms, sums
from m2po_lab.core.objectives import OBJECTIVES, Objective, objective
from m2po_lab.core.selection import Threshold, apply, eligible, keep_m2po, solve_threshold
from m2po_lab.core.sequence import sequence_log_ratio
from m2po_lab.core.statistics import STATISTICS, Statistic
from m2po_lab.core.tails import Largest, largest, pareto_k, tail_length, top_share

__all__ = [
    "OBJECTIVES",
    "RATIOS",
    "STATISTICS",
    "Histogram",
    "Largest",
    "Objective",
    "Statistic",
    "Sums",
    "Threshold",
    "TokenBatch",
    "apply",
    "eligible",
    "histogram",
    "k3_terms",
    "keep_m2po",
    "largest",
    "objective",
    "pareto_k",
    "sequence_log_ratio",
    "solve_threshold",
    "sums",
    "tail_length",
    "top_share",
]
