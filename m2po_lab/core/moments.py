"""Sums of log-ratios, and every statistic that is a function of sums.

Sums cross boundaries (chunks, micro-batches, ranks, machines) by `+`; a statistic is finished where
it is shown. Nothing to average is NaN, never 0. Notation: d is the log-ratio of a kept token.
"""

from dataclasses import dataclass
from typing import Any

from m2po_lab.core.arrays import Array, float64, namespace

EXPM1_LIMIT = 709.0
"""Above this exp overflows float64; the sum is inf then, and the statistic says so."""
SERIES_LIMIT = 1e-4
"""Below this |d| the k3 series is more exact than expm1(d) - d, which cancels."""


@dataclass(frozen=True)
class Sums:
    """What a set of tokens (or sequences) adds up to; `a + b` is the sums of both sets.

    Every field is an array of the same shape, 0-d for one set of tokens.

    Attributes:
        n: how many values.
        rows: how many rows hold at least one of them.
        log_ratio: sum of d, in nats.
        square: sum of d^2.
        absolute: sum of |d|.
        k3: sum of e^d - 1 - d, each term at least 0.
        ratio_excess: sum of e^d - 1.
        square_excess: sum of e^(2d) - 1; inf where that overflows float64.
        log_ratio_sum: log of the sum of e^d; -inf for an empty set. Finite where e^d overflows.
        log_square_sum: log of the sum of e^(2d).
        low: smallest d; inf for an empty set.
        high: largest d; -inf for an empty set.
    """

    n: Array
    rows: Array
    log_ratio: Array
    square: Array
    absolute: Array
    k3: Array
    ratio_excess: Array
    square_excess: Array
    log_ratio_sum: Array
    log_square_sum: Array
    low: Array
    high: Array

    def __add__(self, other: "Sums") -> "Sums":
        """Sums of the union of two disjoint sets."""
        xp = namespace(self.square, other.square)
        return Sums(
            self.n + other.n,
            self.rows + other.rows,
            self.log_ratio + other.log_ratio,
            self.square + other.square,
            self.absolute + other.absolute,
            self.k3 + other.k3,
            self.ratio_excess + other.ratio_excess,
            self.square_excess + other.square_excess,
            xp.logaddexp(self.log_ratio_sum, other.log_ratio_sum),
            xp.logaddexp(self.log_square_sum, other.log_square_sum),
            xp.minimum(self.low, other.low),
            xp.maximum(self.high, other.high),
        )


def sums(log_ratio: Array, keep: Array, rows: Array | int = 0) -> Sums:
    """Add up the kept log-ratios.

    Args:
        log_ratio: d in nats, any shape; what lies under `keep == False` is ignored, NaN included.
        keep: boolean, same shape.
        rows: how many rows hold a kept token (`row_counts > 0`); carried along, not derived.

    Returns:
        Sums whose fields are 0-d arrays: float64, the counts int64.
    """
    xp = namespace(log_ratio, keep)
    d = xp.where(keep, float64(log_ratio), xp.zeros((), dtype=xp.float64, device=log_ratio.device))
    n = xp.sum(xp.astype(keep, xp.int64))
    if not isinstance(rows, int):
        count = rows
    else:
        count = xp.asarray(rows, dtype=xp.int64, device=log_ratio.device)
    inf = xp.asarray(float("inf"), dtype=xp.float64, device=log_ratio.device)
    empty = 0 in d.shape
    low = inf if empty else xp.min(xp.where(keep, d, inf))
    high = -inf if empty else xp.max(xp.where(keep, d, -inf))
    return Sums(
        n=n,
        rows=count,
        log_ratio=xp.sum(d),
        square=xp.sum(d * d),
        absolute=xp.sum(xp.abs(d)),
        k3=xp.sum(k3_terms(d)),
        ratio_excess=xp.sum(_expm1(xp, d)),
        square_excess=xp.sum(_expm1(xp, 2 * d)),
        log_ratio_sum=_log_sum_exp(xp, d, keep, high),
        log_square_sum=_log_sum_exp(xp, 2 * d, keep, 2 * high),
        low=low,
        high=high,
    )


def k3_terms(log_ratio: Array) -> Array:
    """Return e^d - 1 - d per element, in nats, at least 0 (Schulman's k3; 0 where d = 0)."""
    xp = namespace(log_ratio)
    d = log_ratio
    series = d * d * (0.5 + d * (1 / 6 + d * (1 / 24)))
    return xp.where(xp.abs(d) < SERIES_LIMIT, series, _expm1(xp, d) - d)


def _expm1(xp: Any, d: Array) -> Array:
    limit = xp.asarray(EXPM1_LIMIT, dtype=d.dtype, device=d.device)
    inf = xp.asarray(float("inf"), dtype=d.dtype, device=d.device)
    return xp.where(d > limit, inf, xp.expm1(xp.minimum(d, limit)))


def _log_sum_exp(xp: Any, d: Array, keep: Array, peak: Array) -> Array:
    """Log of the sum of e^d over kept elements, -inf for none, without overflow."""
    finite = xp.isfinite(peak)
    shift = xp.where(finite, peak, xp.zeros_like(peak))
    low = xp.asarray(-float("inf"), dtype=d.dtype, device=d.device)
    total = xp.sum(xp.exp(xp.where(keep, d - shift, low)))
    one = xp.ones_like(total)
    return xp.where(total > 0, xp.log(xp.where(total > 0, total, one)) + shift, low)


def _mean(total: Array, n: Array) -> Array:
    """Divide by the count, NaN where that is 0."""
    xp = namespace(total)
    nan = xp.full_like(total, float("nan"))
    count = xp.astype(n, xp.float64)
    return xp.where(n > 0, total / xp.where(n > 0, count, xp.ones_like(count)), nan)


def mean(s: Sums) -> Array:
    """E[d], mean log-ratio in nats; any sign."""
    return _mean(s.log_ratio, s.n)


def m2(s: Sums) -> Array:
    """E[d^2], second moment of the log-ratio in nats^2, at least 0 (M2PO, arXiv 2510.01161)."""
    return _mean(s.square, s.n)


def k1(s: Sums) -> Array:
    """-E[d], the estimator of KL(denominator || numerator) that may be negative on a sample."""
    return -mean(s)


def k2(s: Sums) -> Array:
    """E[d^2] / 2 in nats, at least 0."""
    return m2(s) / 2


def k3(s: Sums) -> Array:
    """E[e^d - 1 - d] in nats, at least 0: unbiased for KL and lower in variance than k1."""
    return _mean(s.k3, s.n)


def chi2(s: Sums) -> Array:
    """E[e^(2d)] - 1; estimates the chi-square divergence, blind to r -> 0, may be negative."""
    return _mean(s.square_excess, s.n)


def ess_fraction(s: Sums) -> Array:
    """(sum r)^2 / (n sum r^2) of the raw weights, in (0, 1]; blind to r -> 0."""
    xp = namespace(s.square)
    count = xp.astype(xp.where(s.n > 0, s.n, xp.ones_like(s.n)), xp.float64)
    some = s.n > 0
    zero = xp.zeros_like(s.square)
    first = xp.where(some, s.log_ratio_sum, zero)
    second = xp.where(some, s.log_square_sum, zero)
    value = xp.exp(xp.minimum(2 * first - second - xp.log(count), zero))
    return xp.where(some, value, xp.full_like(value, float("nan")))


def ratio_mean(s: Sums) -> Array:
    """E[r], the mean importance weight; 1 in expectation when the supports agree."""
    return 1 + _mean(s.ratio_excess, s.n)


def ratio_max(s: Sums) -> Array:
    """Largest importance weight r; inf where it overflows float64, NaN for an empty set."""
    xp = namespace(s.square)
    high = xp.where(s.n > 0, s.high, xp.zeros_like(s.high))
    value = 1 + _expm1(xp, high)
    return xp.where(s.n > 0, value, xp.full_like(value, float("nan")))


def log_ratio_min(s: Sums) -> Array:
    """Smallest d in nats; NaN for an empty set."""
    xp = namespace(s.low)
    return xp.where(s.n > 0, s.low, xp.full_like(s.low, float("nan")))


def log_ratio_max(s: Sums) -> Array:
    """Largest d in nats; NaN for an empty set."""
    xp = namespace(s.high)
    return xp.where(s.n > 0, s.high, xp.full_like(s.high, float("nan")))


def abs_mean(s: Sums) -> Array:
    """E|d| in nats, at least 0 and at most sqrt(m2)."""
    return _mean(s.absolute, s.n)
