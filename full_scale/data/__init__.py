"""Data for full-scale runs: published sets -> the files that verl reads, with a manifest."""

from full_scale.data.local import Given
from full_scale.data.part import Settings
from full_scale.data.prepare import DEFAULT, prepare
from full_scale.data.sets import EVALUATION, SETS, TRAINING, DataSet
from full_scale.data.verify import Problem, verify

__all__ = [
    "DEFAULT",
    "EVALUATION",
    "SETS",
    "TRAINING",
    "DataSet",
    "Given",
    "Problem",
    "Settings",
    "prepare",
    "verify",
]
