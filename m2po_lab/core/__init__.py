"""Importance-weight statistics: numpy or torch arrays in, the same kind out.

No I/O, no printing, no configuration; imports numpy and array-api-compat only.
"""

from m2po_lab.core.batch import RATIOS, TokenBatch
from m2po_lab.core.moments import Sums, k3_terms, sums
from m2po_lab.core.sequence import sequence_log_ratio
from m2po_lab.core.statistics import STATISTICS, Statistic
from m2po_lab.core.tails import Largest, largest, pareto_k, tail_length, top_share

__all__ = [
    "RATIOS",
    "STATISTICS",
    "Largest",
    "Statistic",
    "Sums",
    "TokenBatch",
    "k3_terms",
    "largest",
    "pareto_k",
    "sequence_log_ratio",
    "sums",
    "tail_length",
    "top_share",
]
