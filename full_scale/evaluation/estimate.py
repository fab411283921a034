"""avg@k and pass@k of problems with several samples each, with intervals over problems."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Values = NDArray[np.float64]

CONFIDENCE = 0.95
DRAWS = 20_000
"""With so many the ends of an interval are reproducible to about .05 points."""


class Estimate(NamedTuple):
    """A mean over problems with its interval, all in [0, 1].

    Attributes:
        value: the mean; NaN without problems.
        low: lower end of the interval.
        high: upper end.
    """

    value: float
    low: float
    high: float


def average(right: ArrayLike, samples: ArrayLike) -> Values:
    """Fraction of right samples of each problem; its mean over problems is avg@k.

    Args:
        right: (n,) right samples of each problem.
        samples: (n,) all samples of each, at least 1.

    Returns:
        (n,) values in [0, 1].
    """
    return np.asarray(right, np.float64) / np.asarray(samples, np.float64)


def pass_at(right: ArrayLike, samples: ArrayLike, k: int) -> Values:
    """Probability that k samples of a problem, drawn without replacement, hold a right one.

    1 - C(n-c, k) / C(n, k) for c right ones of n: the unbiased estimator of Chen et al. (arXiv
    2107.03374). Its mean over problems is pass@k.

    Args:
        right: (n,) right samples of each problem.
        samples: (n,) all samples of each.
        k: samples that are drawn.

    Returns:
        (n,) values in [0, 1].

    Raises:
        ValueError: a problem has fewer than k samples.
    """
    n, wrong = np.asarray(samples), np.asarray(samples) - np.asarray(right)
    if k < 1 or (n < k).any():
        raise ValueError(f"pass@{k} needs at least {max(k, 1)} samples of every problem")
    missed = np.ones(n.shape)
    for drawn in range(k):
        missed *= np.maximum(wrong - drawn, 0) / (n - drawn)
    return 1 - missed


def over_problems(values: Values, confidence: float = CONFIDENCE) -> Estimate:
    """Mean over problems, with an interval for the mean over all problems of that kind.

    Bayesian bootstrap (Rubin 1981) over the problems and one more: at 0 for the lower end, at 1 for
    the upper. For values of 0 and 1 this is the interval of Clopper and Pearson; for values between
    it is the bound of Gaffke (2005), see Learned-Miller and Thomas (arXiv 1905.06208), which no
    distribution on [0, 1] is known to break, however few the problems. The percentile and BCa
    bootstraps know nothing of problems that were not drawn: with 30 problems of which few are ever
    solved they miss the truth far too often, and give no width at all where none was solved.

    Args:
        values: (n,) one value in [0, 1] for each problem.
        confidence: how often the interval is to hold the truth.
    """
    return mean_of_sets([values], confidence)


def mean_of_sets(sets: Sequence[Values], confidence: float = CONFIDENCE) -> Estimate:
    """Mean of the means of several sets, each weighted alike, with the same kind of interval.

    Args:
        sets: values of the problems of each set.
        confidence: how often the interval is to hold the truth.
    """
    if not sets or not all(values.size for values in sets):
        return Estimate(np.nan, np.nan, np.nan)
    tail = (1 - confidence) / 2
    low = np.mean([_draws(values, 0.0, place) for place, values in enumerate(sets)], axis=0)
    high = np.mean([_draws(values, 1.0, place) for place, values in enumerate(sets)], axis=0)
    return Estimate(
        float(np.mean([values.mean() for values in sets])),
        float(np.quantile(low, tail)),
        float(np.quantile(high, 1 - tail)),
    )


def _draws(values: Values, unseen: float, seed: int) -> Values:
    """Means of the values and an unseen one under Dirichlet weights, (DRAWS,)."""
    distinct, counts = np.unique(np.append(values, unseen), return_counts=True)
    # Weights of equal values add up to a gamma variable with their number as its shape.
    weights = np.random.default_rng(seed).standard_gamma(counts, (DRAWS, counts.size))
    return np.asarray(weights @ distinct / weights.sum(axis=1))
