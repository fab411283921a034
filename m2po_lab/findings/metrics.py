"""What a trainer's own metrics say where a log holds no tokens, or not these columns of them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from m2po_lab.logs.metrics import MetricSeries

ENTROPY = re.compile(
    r"(?:^|/)(?:policy_|approx_)?entropy(?:_mean|_loss|/mean|/avg)?$", re.IGNORECASE
)
"""Mean entropy of tokens: actor/entropy (verl), entropy (TRL), optim/entropy (tinker-cookbook)."""
ALL_EQUAL = re.compile(r"(?:^|/)frac_reward_zero_std$")
"""Share of groups whose rewards are all equal (TRL, ms-swift); 1 leaves no advantage."""
MIXED = re.compile(r"(?:^|/)by_group/frac_mixed$")
"""Share of groups whose rewards differ (tinker-cookbook); 0 leaves no advantage."""
EXTREME = re.compile(r"^(.*advantages?)[/_](max|min)$")
"""Largest and smallest advantage (verl); both 0 leave none."""


def points(series: MetricSeries) -> list[tuple[int, float]]:
    """(step, value) of the finite values, steps ascending."""
    known = np.isfinite(series.value)
    order = np.argsort(series.step[known], kind="stable")
    return list(
        zip(
            series.step[known][order].tolist(),
            series.value[known][order].tolist(),
            strict=True,
        )
    )


def entropies(metrics: Sequence[MetricSeries]) -> Iterator[MetricSeries]:
    """Series of the mean entropy; one that falls below 0 is a loss term or something else."""
    for series in metrics:
        known = series.value[np.isfinite(series.value)]
        if ENTROPY.search(series.name) and known.size and known.min() >= 0:
            yield series


@dataclass(frozen=True)
class Signal:
    """In which steps nothing was to be learnt.

    Args:
        name: the metric that says so.
        dead: step -> whether no advantage was other than 0.
    """

    name: str
    dead: Mapping[int, bool]


def dead_steps(metrics: Sequence[MetricSeries]) -> Signal | None:
    """Return the first metric that tells in which steps every advantage is 0; None if none does."""
    extremes: dict[str, dict[str, MetricSeries]] = {}
    for series in metrics:
        if ALL_EQUAL.search(series.name):
            return Signal(series.name, {step: value >= 1 for step, value in points(series)})
        if MIXED.search(series.name):
            return Signal(series.name, {step: value <= 0 for step, value in points(series)})
        if found := EXTREME.match(series.name):
            extremes.setdefault(found[1], {})[found[2]] = series
    for name, ends in extremes.items():
        if len(ends) == len(("max", "min")):
            high, low = dict(points(ends["max"])), dict(points(ends["min"]))
            return Signal(name, {s: high[s] == 0 == low[s] for s in high if s in low})
    return None
