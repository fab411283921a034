"""Expectation and variance of an objective's gradient, by summing over everything it could sample.

An objective of token or sequence scope treats rows one by one: its gradient on B rows is a mean of
B independent terms, and one call on all outcomes gives all of them. One of mini-batch scope is
summed over all ordered batches of B rows, n^B of them, because one row decides about another.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from m2po_lab.core.batch import TOKEN_FIELDS, TokenBatch
from m2po_lab.core.objectives import Objective
from m2po_lab.exactness.problem import Floats, Integers
from m2po_lab.exactness.staleness import Step

MOST_BATCHES = 200_000


@dataclass(frozen=True)
class Moments:
    """Exact moments of a gradient estimate, in the direction that increases the reward.

    Attributes:
        mean: expected estimate, (parameters,).
        variance: B times the trace of its covariance on B rows: the variance of one row where rows
            are independent.
        rows: B.
    """

    mean: Floats
    variance: float
    rows: int

    def relative_bias(self, target: Floats) -> float:
        """|E g - target| / |target|; 0 is unbiased."""
        return float(np.linalg.norm(self.mean - target) / np.linalg.norm(target))

    def cosine(self, target: Floats) -> float:
        """Cosine of the angle between E g and the target; NaN where E g is 0."""
        size = np.linalg.norm(self.mean)
        return float(self.mean @ target / (size * np.linalg.norm(target))) if size else np.nan

    def relative_deviation(self, target: Floats) -> float:
        """Standard deviation of one row over |target|."""
        return float(np.sqrt(max(self.variance, 0.0)) / np.linalg.norm(target))


def estimator_moments(objective: Objective, step: Step, rows: int = 2) -> Moments:
    """Moments of the gradient that an objective takes of `rows` sampled rows.

    Args:
        objective: aggregation sequence_sum makes every estimate unbiased on policy.
        step: gives outcomes, their probability and the columns.
        rows: B; where rows are independent one is enough and B is 1.

    Raises:
        ValueError: more than MOST_BATCHES batches would have to be listed, or the objective refuses
            a batch.
    """
    if objective.scope in ("token", "sequence") and objective.aggregation == "sequence_sum":
        return row_moments(objective, step)
    return batch_moments(objective, step, rows)


def row_moments(objective: Objective, step: Step) -> Moments:
    """Moments of the gradient of one row, from one call on all outcomes: for independent rows."""
    estimates = np.einsum("nh,nhp->np", objective.gradient(step.batch), step.scores)
    return _moments(step.probability, estimates, 1)


def batch_moments(objective: Objective, step: Step, rows: int) -> Moments:
    """Moments of the gradient of B rows, summed over all ordered batches."""
    n = len(step.probability)
    if n**rows > MOST_BATCHES:
        raise ValueError(f"{n}^{rows} batches are more than {MOST_BATCHES}; pass fewer rows")
    scores, listed = step.scores, np.array(list(product(range(n), repeat=rows)))
    estimates = np.stack([_estimate(objective, step.batch, scores, index) for index in listed])
    probability = np.prod(step.probability[listed], axis=1)
    return _moments(probability, estimates, rows)


def _estimate(objective: Objective, batch: TokenBatch, scores: Floats, index: Integers) -> Floats:
    """Gradient estimate of the batch that holds the given outcomes, in their order."""
    names = [name for name in TOKEN_FIELDS if getattr(batch, name) is not None]
    drawn = TokenBatch(**{name: getattr(batch, name)[index] for name in names})
    per_token = objective.gradient(drawn) / objective.divisor(drawn)
    return np.asarray(np.einsum("bh,bhp->p", per_token, scores[index]))


def _moments(probability: Floats, estimates: Floats, rows: int) -> Moments:
    mean = probability @ estimates
    spread = probability @ ((estimates - mean) ** 2).sum(axis=1)
    return Moments(mean=mean, variance=float(rows * spread), rows=rows)
