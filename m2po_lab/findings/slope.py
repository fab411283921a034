"""How much of d the log-prob itself explains: a robust one-way analysis in bins of log-prob."""

import math
from dataclasses import dataclass

import numpy as np

from m2po_lab.integrity.additive import Floats, Ints
from m2po_lab.integrity.pairs import STEPS

BIN_TOKENS = 20
"""Tokens a bin of log-prob needs for its median."""
FEWEST_BINS = 5
TAIL_BELOW = -1.0
"""The slope is taken below this log-prob; above it the normaliser bends the curve."""
NORMAL_QUARTILES = 1.349
"""Interquartile range of a unit normal."""


@dataclass(frozen=True)
class Slope:
    """A robust fit of d on the denominator's log-prob.

    Args:
        slope: of the bins' medians on log-prob, below `TAIL_BELOW`, all bins alike.
        explained: share of the spread of d between the bins: variance of the medians over that plus
            the mean squared interquartile range within bins in units of a normal's.
        n: tokens in the bins used.
        bins: how many those are.
    """

    slope: float
    explained: float
    n: int
    bins: int


def slope(counts: Ints, edges: Floats) -> Slope | None:
    """Fit counts by log-prob (rows, `edges` from 0 down) and by d (columns, bins of `STEPS`).

    Two softmaxes of the same logits at temperatures T and 1 have log-probs l / T - log Z and l: d
    is a function of the log-prob and the context's Z, steep in the tail (slope T - 1 or 1/T - 1),
    while drift and noise have medians near 0 everywhere. None if there are too few bins with enough
    tokens.
    """
    use = np.flatnonzero(counts.sum(axis=1) >= BIN_TOKENS)
    lower = np.append(edges[1:], edges[-1] - 10)
    center = ((edges + lower) / 2)[use]
    if use.size < FEWEST_BINS or (center < TAIL_BELOW).sum() < 3:
        return None
    low, median, high = (quantiles(counts[use], q) for q in (0.25, 0.5, 0.75))
    weight = counts[use].sum(axis=1) / counts[use].sum()
    within = float((weight * ((high - low) / NORMAL_QUARTILES) ** 2).sum())
    mean = float((weight * median).sum())
    between = float((weight * (median - mean) ** 2).sum())
    total = within + between
    tail = center < TAIL_BELOW
    line = float(np.polyfit(center[tail], median[tail], 1)[0])
    share = between / total if total > 0 else math.nan
    return Slope(line, share, int(counts[use].sum()), int(use.size))


def quantiles(counts: Ints, q: float) -> Floats:
    """Quantile of each row of counts, interpolated within its bin of `STEPS`."""
    low = np.append(STEPS[0] - (STEPS[1] - STEPS[0]), STEPS)
    width = STEPS[1] - STEPS[0]
    total = np.cumsum(counts, axis=1)
    target = q * total[:, -1]
    at = (total < target[:, None]).sum(axis=1)
    index = np.arange(counts.shape[0])
    before = np.where(at > 0, total[index, np.maximum(at - 1, 0)], 0)
    inside = (target - before) / np.maximum(counts[index, at], 1)
    return np.asarray(low[at] + inside * width)
