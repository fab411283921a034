"""Lengths of responses: lognormal, which has the heavy tail of reasoning, cut at a limit."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr


@dataclass(frozen=True)
class Lengths:
    """min(exp(mu + sigma Z), limit) with Z standard normal, in tokens.

    Attributes:
        mu: logarithm of the median, if the limit is above it.
        sigma: standard deviation of the logarithm; 0 makes all lengths equal.
        limit: longest.
    """

    mu: float
    sigma: float
    limit: float

    @classmethod
    def with_mean(cls, mean: float, sigma: float, limit: float) -> "Lengths":
        """Lengths whose mean, after the limit has cut them, is `mean`.

        Raises:
            ValueError: the mean is not within 0 and the limit.
        """
        if not 0 < mean <= limit:
            raise ValueError(f"a mean of {mean:g} tokens under a limit of {limit:g}")
        if sigma == 0 or mean == limit:
            return cls(math.log(mean), 0.0, limit)
        # The mean grows with mu: at `low` it would be right without a limit, at `high` it is the
        # limit up to rounding.
        low, high = math.log(mean) - sigma**2 / 2, math.log(limit) + 8 * sigma
        mu = brentq(lambda mu: cls(mu, sigma, limit).moment(1) - mean, low - 1e-9, high)
        return cls(float(mu), sigma, limit)

    def moment(self, power: int) -> float:
        """E min(X, c)^k = e^(k mu + k^2 s^2/2) P(Z < z - k s) + c^k P(Z > z), z = (ln c - mu)/s."""
        if self.sigma == 0:
            return min(math.exp(self.mu), self.limit) ** power
        z = (math.log(self.limit) - self.mu) / self.sigma
        below = math.exp(power * self.mu + (power * self.sigma) ** 2 / 2)
        below *= float(ndtr(z - power * self.sigma))
        return below + self.limit**power * float(ndtr(-z))

    def cut(self) -> float:
        """Share of responses that the limit cuts."""
        if self.sigma == 0:
            return 0.0
        return float(ndtr((self.mu - math.log(self.limit)) / self.sigma))

    def sample(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Draw lengths; real numbers, since a share of a token takes a share of its time."""
        drawn = np.exp(self.mu + self.sigma * rng.standard_normal(size))
        return np.minimum(drawn, self.limit)
