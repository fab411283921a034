"""Does a statistic foresee a collapse? Labels, features, ROC with intervals, alarms on unseen runs.

A run collapses when its smoothed reward falls `DROP` below its running maximum. At a step before
that, the question is whether the collapse comes within `HORIZON` updates. What lies between the
horizon and twice the horizon is left out, and so is everything after the collapse: the question is
about warning, not about noticing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

DROP, WIDTH = 0.3, 5
"""How far the reward must fall, and over how many steps it is averaged."""
HORIZON, LEAD = 64, 8
"""Updates ahead that a warning should come, at most and at least."""
UPDATES_PER_STEP, TRAILING = 4, 16
"""Updates a step; steps of a trailing median."""

LEVELS = {
    "m2": np.log10,
    "m2_all": np.log10,
    "k3": np.log10,
    "ess_fraction": np.negative,
    "ratio_max": np.log10,
    "top1pct_m2_share": np.positive,
    "pareto_k": np.positive,
    "entropy": np.negative,
    "gradient_norm": np.log10,
    "reward": np.negative,
    "masked_fraction": np.positive,
    "signal_fraction": np.negative,
}
"""Statistic of a step -> how it becomes a score that grows with danger, if it knows any."""


def onset(reward: Floats) -> int | None:
    """Give the first step whose smoothed reward lies `DROP` below its running maximum, or None."""
    if len(reward) < WIDTH:
        return None
    smooth = np.convolve(reward, np.full(WIDTH, 1 / WIDTH), "valid")
    fallen = smooth <= np.maximum.accumulate(smooth) - DROP
    return int(fallen.argmax()) + WIDTH - 1 if fallen.any() else None


def labels(start: int | None, steps: int) -> NDArray[np.int8]:
    """Label each step: 1 a collapse is LEAD to HORIZON updates ahead, 0 none is, -1 left out."""
    found = np.zeros(steps, np.int8)
    if start is not None:
        ahead = (start - np.arange(steps)) * UPDATES_PER_STEP
        found[ahead < 2 * HORIZON] = -1
        found[(ahead >= LEAD) & (ahead <= HORIZON)] = 1
    return found


def features(metrics: Mapping[str, Floats], staleness: int) -> dict[str, Floats]:
    """Scores of each step that know only what came before it.

    Args:
        metrics: by name, (steps,) each; NaN where a step has none.
        staleness: of the run, updates.

    Returns:
        For each statistic its `level`, its `slope` over the last `WIDTH` steps, and its `jump`
        against the trailing median; `lags`, the updates done in units of the staleness.
    """
    found: dict[str, Floats] = {}
    for name, scale in LEVELS.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            level = scale(metrics[name])
        level = np.where(np.isfinite(level), level, np.nan)
        found[name] = level
        found[f"{name}.slope"] = _ago(level, WIDTH)
        found[f"{name}.jump"] = level - _trailing_median(level)
    steps = np.arange(len(metrics["reward"]), dtype=np.float64)
    found["lags"] = steps * UPDATES_PER_STEP / max(staleness, UPDATES_PER_STEP)
    return found


def auc(score: Floats, label: NDArray[np.int8]) -> float:
    """Area under the ROC: how often a step before a collapse scores above one that is not.

    Ties count half, a missing score is the lowest. NaN without steps of both kinds.
    """
    bad, good = score[label == 1], score[label == 0]
    if not (len(bad) and len(good)):
        return float("nan")
    filled = np.nan_to_num(np.concatenate([bad, good]), nan=-np.inf)
    ranks = stats.rankdata(filled)[: len(bad)]
    return float((ranks.mean() - (len(bad) + 1) / 2) / len(good))


def roc(
    score: Floats, label: NDArray[np.int8], points: int = 101
) -> tuple[list[float], list[float]]:
    """Shares of calm steps and of steps before a collapse at or above a score, as it falls."""
    filled = np.nan_to_num(score, nan=-np.inf)
    bad, good = np.sort(filled[label == 1]), np.sort(filled[label == 0])
    cuts = good[np.linspace(len(good) - 1, 0, min(points, len(good))).astype(int)]
    found = [1 - np.searchsorted(kind, cuts, "left") / len(kind) for kind in (good, bad)]
    false, true = ([0.0, *shares.tolist(), 1.0] for shares in found)
    return false, true


def auc_interval(
    score: Floats,
    label: NDArray[np.int8],
    run: NDArray[np.int64],
    rng: np.random.Generator,
    draws: int = 1000,
) -> tuple[float, float]:
    """95 % interval of the area, by a bootstrap over runs: the steps of a run go together."""
    filled = np.nan_to_num(score, nan=-np.inf)
    runs, place = np.unique(run, return_inverse=True)
    bad, good = label == 1, label == 0
    # won[i, j]: pairs of a step before the collapse of run i and a calm one of run j in order.
    won = np.empty((len(runs), len(runs)))
    for j in range(len(runs)):
        calm = np.sort(filled[good & (place == j)])
        below, up_to = (np.searchsorted(calm, filled[bad], side) for side in ("left", "right"))
        won[:, j] = np.bincount(place[bad], (below + up_to) / 2, minlength=len(runs))
    n_bad, n_good = (np.bincount(place[kind], minlength=len(runs)) for kind in (bad, good))
    times = rng.multinomial(len(runs), np.full(len(runs), 1 / len(runs)), size=draws)
    pairs = (times @ n_bad) * (times @ n_good)
    areas = np.einsum("di,ij,dj->d", times, won, times, optimize=True)[pairs > 0] / pairs[pairs > 0]
    if not len(areas):
        return float("nan"), float("nan")
    low, high = np.quantile(areas, [0.025, 0.975])
    return float(low), float(high)


@dataclass(frozen=True)
class Alarms:
    """What a threshold does on whole runs.

    Attributes:
        collapsed: runs that collapse.
        leads: updates between the first alarm and the collapse, of each warned run.
        stable: runs that do not collapse.
        false: those with an alarm.
    """

    collapsed: int
    leads: tuple[int, ...]
    stable: int
    false: int

    @property
    def warned(self) -> int:
        """Runs with an alarm at least LEAD updates before the collapse."""
        return len(self.leads)

    @property
    def warned_interval(self) -> tuple[float, float]:
        """95 % interval of the share of collapses that are warned of (Clopper and Pearson)."""
        return share_interval(self.warned, self.collapsed)

    @property
    def false_interval(self) -> tuple[float, float]:
        """95 % interval of the share of stable runs with a false alarm."""
        return share_interval(self.false, self.stable)


def alarms(scores: Sequence[Floats], onsets: Sequence[int | None], threshold: float) -> Alarms:
    """Raise an alarm at the first step above a threshold, in every run."""
    leads, collapsed, false = [], 0, 0
    for score, start in zip(scores, onsets, strict=True):
        above = np.flatnonzero(np.nan_to_num(score, nan=-np.inf) > threshold)
        first = int(above[0]) if len(above) else None
        if start is None:
            false += first is not None
            continue
        collapsed += 1
        if first is not None and (start - first) * UPDATES_PER_STEP >= LEAD:
            leads.append((start - first) * UPDATES_PER_STEP)
    return Alarms(collapsed, tuple(leads), len(onsets) - collapsed, false)


def threshold_for(
    scores: Sequence[Floats], onsets: Sequence[int | None], false_rate: float
) -> float:
    """Lowest threshold at which at most this share of the stable runs raises an alarm.

    inf without stable runs: nothing is known about false alarms, so none is raised.
    """
    peaks = [
        float(np.nan_to_num(score, nan=-np.inf).max())
        for score, start in zip(scores, onsets, strict=True)
        if start is None
    ]
    if not peaks:
        return float("inf")
    allowed = int(false_rate * len(peaks))
    return sorted(peaks, reverse=True)[allowed] if allowed < len(peaks) else -np.inf


def share_interval(hits: int, n: int) -> tuple[float, float]:
    """95 % interval of a share by Clopper and Pearson; (0, 1) for nothing seen."""
    if n == 0:
        return 0.0, 1.0
    low = stats.beta.ppf(0.025, hits, n - hits + 1) if hits else 0.0
    high = stats.beta.ppf(0.975, hits + 1, n - hits) if hits < n else 1.0
    return float(low), float(high)


@dataclass(frozen=True)
class Logistic:
    """A logistic rule on standardised features; missing ones count as the mean.

    Attributes:
        mean: (F,) of each feature.
        scale: (F,) standard deviation of each feature.
        weights: (F + 1,) the last is the constant.
    """

    mean: Floats
    scale: Floats
    weights: Floats

    def score(self, columns: Floats) -> Floats:
        """Log-odds (n,) of features (n, F)."""
        return _design(columns, self.mean, self.scale) @ self.weights


def fit(columns: Floats, label: NDArray[np.int8], ridge: float = 10.0) -> Logistic:
    """Fit a logistic rule by Newton's method; both kinds of steps weigh the same in all.

    Args:
        columns: (n, F) features.
        label: (n,) 1, 0, or -1 for steps to leave out.
        ridge: penalty on the squared weights, in steps.

    Raises:
        ValueError: the steps are all of one kind.
    """
    used = label >= 0
    columns, y = columns[used], (label[used] == 1).astype(np.float64)
    mean, scale = np.nanmean(columns, axis=0), np.nanstd(columns, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    x = _design(columns, mean, scale)
    share = y.mean()
    if share in (0.0, 1.0):
        raise ValueError(
            "every step has the same label; a rule needs runs that collapse and others"
        )
    weight = np.where(y == 1, 0.5 / share, 0.5 / (1 - share))
    beta = np.zeros(x.shape[1])
    penalty = ridge * np.eye(x.shape[1])
    penalty[-1, -1] = 0
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))
        gradient = x.T @ (weight * (y - p)) - penalty @ beta
        curvature = (x * (weight * p * (1 - p) + 1e-9)[:, None]).T @ x + penalty
        beta = beta + np.linalg.solve(curvature, gradient)
    return Logistic(mean, scale, beta)


def _design(columns: Floats, mean: Floats, scale: Floats) -> Floats:
    z: Floats = np.clip(np.nan_to_num((columns - mean) / scale, nan=0.0), -5, 5)
    return np.concatenate([z, np.ones((len(z), 1))], axis=1)


def _ago(level: Floats, steps: int) -> Floats:
    """Difference to the value some steps ago; NaN in the beginning."""
    before = np.full(len(level), np.nan)
    before[steps:] = level[:-steps]
    slope: Floats = level - before
    return slope


def _trailing_median(level: Floats) -> Floats:
    """Median of the TRAILING steps before each; NaN where there are none."""
    before = pd.Series(level).rolling(TRAILING, min_periods=1).median().shift(1)
    return np.asarray(before, np.float64)
