"""Series of metric files: one number a step, as trainers log them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class MetricSeries:
    """One metric over the steps of a run.

    Args:
        name: the trainer's name of the metric.
        source: file it came from.
        step: (S,) trainer steps as the file gives them, in file order.
        value: (S,) values; NaN where the file says null, infinities kept.
        framework: reader that recognised the file.
    """

    name: str
    source: str
    step: NDArray[np.int64]
    value: NDArray[np.float64]
    framework: str
