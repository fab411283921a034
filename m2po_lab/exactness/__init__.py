"""Exact bias and variance of every objective on problems small enough to enumerate."""

from m2po_lab.exactness.estimator import Moments, batch_moments, estimator_moments, row_moments
from m2po_lab.exactness.problem import (
    Outcomes,
    Problem,
    bandit,
    log_policy,
    short_sequence,
    uneven_bandit,
)
from m2po_lab.exactness.staleness import Step, stale_step, stale_steps
from m2po_lab.exactness.table import Row, compare, unbiased_lags

__all__ = [
    "Moments",
    "Outcomes",
    "Problem",
    "Row",
    "Step",
    "bandit",
    "batch_moments",
    "compare",
    "estimator_moments",
    "log_policy",
    "row_moments",
    "short_sequence",
    "stale_step",
    "stale_steps",
    "unbiased_lags",
    "uneven_bandit",
]
