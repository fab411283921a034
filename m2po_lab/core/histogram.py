"""Additive histogram of |d| over the bits of the float: every sweep after a single pass.

A bin is a sign of the advantage, a side of d, and the exponent and leading mantissa bits of |d|.
Nothing has to be known in advance, bins have the same relative width everywhere, and histograms of
chunks, micro-batches, ranks and files add up.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from m2po_lab.core import binning
from m2po_lab.core.arrays import Array
from m2po_lab.core.binning import BIAS, HIGH_EXPONENT, LOW_EXPONENT, MANTISSA
from m2po_lab.core.tails import top_count

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MANTISSA_BITS = 7
NEGATIVE, ZERO, POSITIVE = 0, 1, 2
"""Sign of the advantage: A < 0, A = 0 or unknown, A > 0."""
DOWN, UP = 0, 1
"""Side of the log-ratio: d <= 0, d > 0."""
FIELDS = ("count", "square", "advantage_abs", "advantage_square")
QUADRANTS = {
    "A>0,r>1": ((POSITIVE, UP, slice(None)),),
    "A>0,r<=1": ((POSITIVE, DOWN, slice(None)),),
    "A<0,r<1": ((NEGATIVE, DOWN, slice(1, None)),),
    "A<0,r>=1": ((NEGATIVE, UP, slice(None)), (NEGATIVE, DOWN, slice(0, 1))),
    "A=0": ((ZERO, UP, slice(None)), (ZERO, DOWN, slice(None))),
}
"""Quadrant -> the (advantage, side, bins) it is made of; d = 0 has r = 1."""
ACTIVE = QUADRANTS["A>0,r>1"] + QUADRANTS["A<0,r<1"]
"""The trust-region tokens H."""


@dataclass(frozen=True)
class Bracket:
    """A count that lies in [low, high]: the bin on the boundary is not in one, but in the other."""

    low: int
    high: int


@dataclass(frozen=True)
class BudgetBracket:
    """What the histogram says of M2PO's threshold.

    Attributes:
        active: tokens in H.
        masked: how many of them Algorithm 1 masks.
        threshold_low: the cut of |d| in nats is at least this; inf where nothing is masked.
        threshold_high: and at most this.
        m2_before: mean of d^2 over H in nats^2, NaN where H is empty.
    """

    active: int
    masked: Bracket
    threshold_low: float
    threshold_high: float
    m2_before: float


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts and sums per (sign of A, side of d, bin of |d|); `a + b` is the histogram of both.

    Bins along the last axis: 0 holds d = 0 exactly, 1 holds 0 < |d| < 2^-24, the last one
    |d| >= 2^16 (infinities and NaN too), and those between have the relative width
    2^-mantissa_bits. Plain numpy arrays of shape (3, 2, bins), so it pickles.

    Attributes:
        mantissa_bits: leading bits of the mantissa that tell bins apart.
        count: tokens, int64.
        square: sum of d^2 in nats^2.
        advantage_abs: sum of |A|; zeros where advantages are unknown.
        advantage_square: sum of A^2; zeros where advantages are unknown.
    """

    mantissa_bits: int
    count: Ints
    square: Floats
    advantage_abs: Floats
    advantage_square: Floats

    def __add__(self, other: "Histogram") -> "Histogram":
        """Histogram of the union of two disjoint sets, bins of the coarser of the two."""
        bits = min(self.mantissa_bits, other.mantissa_bits)
        a, b = self.coarser(bits), other.coarser(bits)
        return Histogram(bits, *(getattr(a, name) + getattr(b, name) for name in FIELDS))

    def coarser(self, mantissa_bits: int) -> "Histogram":
        """Return the same histogram with fewer bins."""
        drop = self.mantissa_bits - mantissa_bits
        if drop == 0:
            return self
        if drop < 0:
            raise ValueError(
                f"a histogram with {self.mantissa_bits} mantissa bits cannot be refined to"
                f" {mantissa_bits}; bin the log-ratios again"
            )
        last = self.count.shape[-1] - 1
        starts = np.concatenate([[0, 1], np.arange(2, last, 1 << drop), [last]])
        merged = (np.add.reduceat(getattr(self, name), starts, axis=-1) for name in FIELDS)
        return Histogram(mantissa_bits, *merged)

    def part(self, cells: tuple[tuple[int, int, slice], ...]) -> "Histogram":
        """Return the histogram of the tokens in some (sign of A, side, bins)."""
        columns = []
        for name in FIELDS:
            whole = getattr(self, name)
            some = np.zeros_like(whole)
            for cell in cells:
                some[cell] = whole[cell]
            columns.append(some)
        return Histogram(self.mantissa_bits, *columns)

    def quadrant(self, name: str) -> "Histogram":
        """Return the histogram of one quadrant, a key of QUADRANTS.

        Raises:
            ValueError: unknown quadrant.
        """
        if name not in QUADRANTS:
            raise ValueError(f"unknown quadrant {name!r}; one of {', '.join(QUADRANTS)}")
        return self.part(QUADRANTS[name])

    def active(self) -> "Histogram":
        """Return the histogram of the trust-region tokens H."""
        return self.part(ACTIVE)

    def edges(self) -> Floats:
        """Edges in nats, one more than bins: bin i holds edges[i] <= |d| < edges[i + 1]."""
        regular = np.arange((HIGH_EXPONENT - LOW_EXPONENT << self.mantissa_bits) + 1)
        keys = (regular << MANTISSA - self.mantissa_bits) + (BIAS + LOW_EXPONENT << MANTISSA)
        return np.concatenate([[0.0, np.nextafter(0.0, 1.0)], keys.view(np.float64), [np.inf]])

    @property
    def relative_error(self) -> float:
        """Largest relative error of `quantile` for 2^-24 <= |d| < 2^16."""
        return 2.0**-self.mantissa_bits

    @property
    def n(self) -> int:
        """Tokens."""
        return int(self.count.sum())

    @property
    def m2(self) -> float:
        """Mean of d^2 in nats^2, NaN for no tokens."""
        return float(self.square.sum()) / self.n if self.n else math.nan

    def quantile(self, q: float) -> float:
        """Quantile of |d| in nats, linear between order statistics as numpy's default.

        An order statistic is given as the root mean square of its bin: exact where all values of
        the bin are equal, off by less than `relative_error` otherwise. Exact zeros are exact. Below
        2^-24 the error is less than 2^-24 in nats.

        Args:
            q: in [0, 1].

        Returns:
            NaN for no tokens.

        Raises:
            ValueError: q outside [0, 1].
        """
        if not 0 <= q <= 1:
            raise ValueError(f"quantile {q} is outside [0, 1]")
        n = self.n
        if n == 0:
            return math.nan
        count, square = self.count.sum(axis=(0, 1)), self.square.sum(axis=(0, 1))
        place = q * (n - 1)
        low = math.floor(place)
        bins = np.searchsorted(np.cumsum(count), [low, min(low + 1, n - 1)], side="right")
        below, above = (float(v) for v in np.sqrt(square[bins] / count[bins]))
        return below if below == above else below + (place - low) * (above - below)

    def exceed(self, log_ratio: float, sign: int, side: int) -> Bracket:
        """Count tokens of one sign of A with |d| > log_ratio on one side of 0.

        Args:
            log_ratio: bound in nats, at least 0; inf for none.
            sign: NEGATIVE, ZERO or POSITIVE.
            side: DOWN or UP.
        """
        edges, count = self.edges(), self.count[sign, side, 1:]
        certain, possible = edges[1:-1] > log_ratio, edges[2:] > log_ratio
        return Bracket(int(count[certain].sum()), int(count[possible].sum()))

    def clipped(self, eps_low: float, eps_high: float) -> tuple[Bracket, Bracket]:
        """Count what a PPO clip cuts: (A < 0, r < 1 - eps_low), then (A > 0, r > 1 + eps_high)."""
        low = -math.log1p(-eps_low) if eps_low < 1 else math.inf
        return (
            self.exceed(low, NEGATIVE, DOWN),
            self.exceed(math.log1p(eps_high), POSITIVE, UP),
        )

    def budget_threshold(self, budget: float) -> BudgetBracket:
        """Bracket what M2PO masks at a budget, in the one bin where the mean crosses it.

        Args:
            budget: bound on the mean of d^2 over H in nats^2, at least 0.

        Raises:
            ValueError: a budget that is negative or NaN.
        """
        if not budget >= 0:
            raise ValueError(f"budget is {budget}; pass a number of nats^2 that is at least 0")
        inside = self.active()
        count, square = inside.count.sum(axis=(0, 1)), inside.square.sum(axis=(0, 1))
        n, total = np.cumsum(count), np.cumsum(square)
        active, before = int(n[-1]), inside.m2
        over = np.flatnonzero((total > budget * n) & (count > 0))
        if over.size == 0:
            return BudgetBracket(active, Bracket(0, 0), math.inf, math.inf, before)
        index = int(over[0])
        edges, c = self.edges(), int(count[index])
        room = max(budget * (n[index] - c) - (total[index] - square[index]), 0.0)
        # The smallest j squares of a bin sum to between j times its lower edge squared and j times
        # its mean; one token of slack covers the rounding of these float sums.
        least = _whole(room, float(square[index] / c) - budget)
        most = _whole(room, float(edges[index]) ** 2 - budget)
        stay_low, stay_high = max(0, min(least - 1, c - 1)), max(0, min(most + 1, c))
        rest = active - int(n[index]) + c
        masked = Bracket(rest - stay_high, rest - stay_low)
        return BudgetBracket(active, masked, float(edges[index]), float(edges[index + 1]), before)

    def top_share(self, fraction: float = 0.01) -> float:
        """Share of sum d^2 that the ceil(fraction n) largest |d| hold, in [0, 1].

        Whole bins are exact; of the last one the tokens needed count with its mean, which is off by
        at most 2^(1 - mantissa_bits) of what they hold.

        Returns:
            NaN for no tokens or where every d is 0.
        """
        n, total = self.n, float(self.square.sum())
        if n == 0 or not total > 0:
            return math.nan
        wanted = top_count(n, fraction)
        count = self.count.sum(axis=(0, 1))[::-1]
        square = self.square.sum(axis=(0, 1))[::-1]
        running = np.cumsum(count)
        index = int(np.searchsorted(running, wanted))
        held = float(square[:index].sum())
        missing = wanted - int(running[index] - count[index])
        held += float(square[index]) * missing / max(int(count[index]), 1)
        return min(held / total, 1.0)


def _whole(room: float, each: float) -> int:
    """How many times `each` fits into room; a large number where it takes no room."""
    return math.floor(room / each) if each > 0 and room / each < 1 << 62 else 1 << 62


def histogram(
    log_ratio: Array,
    keep: Array,
    advantage: Array | None = None,
    *,
    mantissa_bits: int = MANTISSA_BITS,
) -> Histogram:
    """Bin the kept log-ratios.

    Args:
        log_ratio: d in nats, any shape; what lies under `keep == False` is ignored, NaN included.
        keep: boolean, same shape.
        advantage: same shape; None counts every token as A = 0 or unknown.
        mantissa_bits: resolution, 0 to 20: quantiles are within a factor 1 +- 2^-mantissa_bits.

    Returns:
        Histogram of plain numpy arrays, whatever the library and device of the input.

    Raises:
        ValueError: mantissa_bits out of range.
    """
    if not 0 <= mantissa_bits <= 20:
        raise ValueError(f"mantissa_bits is {mantissa_bits}; pass 0 to 20")
    on_device = getattr(log_ratio.device, "type", "cpu") == "cuda"
    count, sums = (binning.bin_device if on_device else binning.bin_host)(
        log_ratio, keep, advantage, mantissa_bits
    )
    shape = (3, 2, binning.n_bins(mantissa_bits))
    return Histogram(mantissa_bits, count.reshape(shape), *(s.reshape(shape) for s in sums))
