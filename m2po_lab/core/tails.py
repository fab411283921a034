"""What the extremes say: the largest values (mergeable), Pareto k-hat, share of M2 in the top."""

import math
from dataclasses import dataclass

from m2po_lab.core.arrays import Array, float64, namespace

MIN_TAIL = 5
"""Below this many tail values no Pareto fit is given."""
SMALLEST_QUARTILE = 1e-200
"""Least lower quartile of the tail over its largest value that the fit tells from 0."""
PRIOR_K, PRIOR_WEIGHT = 0.5, 10.0
"""Weakly informative prior of the Pareto shape (Vehtari et al., arXiv 1507.02646, appendix C)."""


@dataclass(frozen=True)
class Largest:
    """The `size` largest values of a set, descending; `a + b` is that of both sets.

    Attributes:
        values: at most `size` values, largest first, float64.
        size: how many are kept at the most.
    """

    values: Array
    size: int

    def __add__(self, other: "Largest") -> "Largest":
        """Largest values of the union; both sides must keep the same number."""
        if self.size != other.size:
            raise ValueError(f"cannot merge the largest {self.size} with the largest {other.size}")
        xp = namespace(self.values)
        both = xp.concat([self.values, other.values])
        return Largest(xp.sort(both, descending=True)[: self.size], self.size)


def largest(values: Array, keep: Array, size: int) -> Largest:
    """Return the `size` largest kept values; ties are as good as each other."""
    xp = namespace(values)
    kept = xp.reshape(float64(values), (-1,))[xp.reshape(keep, (-1,))]
    return Largest(xp.sort(kept, descending=True)[:size], size)


def tail_length(n: int) -> int:
    """Return how many of n weights count as the upper tail: floor(min(n / 5, 3 sqrt n))."""
    return min(n // 5, math.isqrt(9 * n))


def pareto_k(log_weights: Array, n: int) -> Array:
    """Shape k-hat of a generalised Pareto fit to the upper tail of e^d (PSIS).

    The tail is the `tail_length(n)` largest weights, measured from the next smaller one. Zhang and
    Stephens' estimator with the prior of Vehtari and others (arXiv 1507.02646, appendix C).
    Below .5 the variance of the weights is finite, above .7 importance sampling is unreliable,
    above 1 even the mean does not exist. It depends on weights up to a factor only, so d may be
    shifted and large.

    Args:
        log_weights: the largest d in descending order, at least tail_length(n) + 1 of them.
        n: how many d there are in all.

    Returns:
        0-d float64, any sign; NaN where the tail has under 5 values, is flat, or is not finite.

    Raises:
        ValueError: fewer values than the tail needs.
    """
    xp = namespace(log_weights)
    nan = xp.asarray(float("nan"), dtype=xp.float64, device=log_weights.device)
    size = tail_length(n)
    if size < MIN_TAIL or size >= n:
        return nan
    if log_weights.shape[0] < size + 1:
        raise ValueError(
            f"k-hat of {n} weights needs the {size + 1} largest, got {log_weights.shape[0]}"
        )
    top = float64(log_weights)[: size + 1]
    shifted = top - top[0]
    excess = xp.flip(xp.exp(shifted[:size]) - xp.exp(shifted[size]))
    if not bool(xp.isfinite(top[0])) or not bool(excess[-1] > 0):
        return nan
    return _fit_shape(excess)


def _fit_shape(excess: Array) -> Array:
    """Zhang and Stephens (2009): profile posterior mean of k over a grid, then shrink to the prior.

    `excess` ascends and its last value is positive. Where theta is 0 (a tail of equal values puts
    it on the grid) -theta / shape takes its limit, 1 / mean.
    """
    xp = namespace(excess)
    n = excess.shape[0]
    quartile = excess[int(n / 4 + 0.5) - 1]
    # Weights can span more than a float's range; below the floor 1 / scale would overflow.
    scale = xp.maximum(quartile, SMALLEST_QUARTILE * excess[-1])
    scale = xp.where(quartile > 0, scale, excess[-1])
    grid = 30 + int(math.sqrt(n))
    index = xp.arange(1, grid + 1, dtype=xp.float64, device=excess.device)
    theta = 1 / excess[-1] + (1 - xp.sqrt(grid / (index - 0.5))) / (3 * scale)
    shape = xp.mean(xp.log1p(-theta[:, None] * excess[None, :]), axis=1)
    flat = shape == 0
    rate = xp.where(flat, 1 / xp.mean(excess), -theta / xp.where(flat, xp.ones_like(shape), shape))
    likelihood = n * (xp.log(rate) - shape - 1)
    weight = xp.exp(likelihood - xp.max(likelihood))
    weight = weight / xp.sum(weight)
    significant = weight >= 10 * 2.220446049250313e-16
    weight = xp.where(significant, weight, xp.zeros_like(weight))
    best = xp.sum(theta * weight) / xp.sum(weight)
    k = xp.mean(xp.log1p(-best * excess))
    return (n * k + PRIOR_WEIGHT * PRIOR_K) / (n + PRIOR_WEIGHT)


def top_count(n: int, fraction: float = 0.01) -> int:
    """Return how many values the top `fraction` of n holds: ceil(fraction n)."""
    return math.ceil(round(fraction * n, 9))


def top_share(largest_abs: Array, total_square: Array, n: int, fraction: float = 0.01) -> Array:
    """Share of sum d^2 that the ceil(fraction n) largest |d| hold, in [0, 1].

    Near 1 while the median is near 0 means that a handful of tokens carries the drift.

    Args:
        largest_abs: the largest |d| in descending order, at least ceil(fraction n) of them.
        total_square: sum of d^2 over all n.
        n: how many tokens.
        fraction: size of the top, in (0, 1].

    Returns:
        0-d float64; NaN for no tokens or where every d is 0.

    Raises:
        ValueError: fewer values than the top needs.
    """
    xp = namespace(largest_abs)
    count = top_count(n, fraction)
    if largest_abs.shape[0] < count:
        raise ValueError(f"the top {count} of {n} values, but only {largest_abs.shape[0]} given")
    top = float64(largest_abs)[:count]
    some = xp.asarray(total_square) > 0
    one = xp.ones((), dtype=xp.float64, device=largest_abs.device)
    share = xp.minimum(xp.sum(top * top) / xp.where(some, total_square, one), one)
    return xp.where(some, share, xp.full_like(share, float("nan")))
