"""Evaluation of full-scale runs: generations -> avg@k, pass@k, intervals, the paper's table."""

from full_scale.evaluation.attribute import Prepared, attributed
from full_scale.evaluation.estimate import Estimate, mean_of_sets, over_problems, pass_at
from full_scale.evaluation.evaluate import counted, evaluate, scored
from full_scale.evaluation.generations import Sample, read
from full_scale.evaluation.paper import PAPER
from full_scale.evaluation.report import report
from full_scale.evaluation.steps import of_step
from full_scale.evaluation.table import table, text

__all__ = [
    "PAPER",
    "Estimate",
    "Prepared",
    "Sample",
    "attributed",
    "counted",
    "evaluate",
    "mean_of_sets",
    "of_step",
    "over_problems",
    "pass_at",
    "read",
    "report",
    "scored",
    "table",
    "text",
]
