"""Series of metric files: one number a step, as trainers log them."""

from dataclasses import dataclass, replace

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

    def followed_by(self, other: "MetricSeries") -> "MetricSeries":
        """This series with the steps of another file behind it."""
        step = np.concatenate([self.step, other.step])
        return replace(self, step=step, value=np.concatenate([self.value, other.value]))
