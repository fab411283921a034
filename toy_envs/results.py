"""What a figure shows, as numbers: curves over seeds, and entropy against the ratio."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2po_lab.logs.open import open_log
from toy_envs.journal import LOG, read_metrics
from toy_envs.parallel import seconds_of

RATIO_EDGES = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0])
"""Bins of |r - 1|; what lies beyond is counted in none."""
FINAL_STEPS = 12
"""How many steps at the end count as the final accuracy."""


def curves(runs: Sequence[Path]) -> dict[str, Any]:
    """Average the metrics of several seeds of one arm.

    Returns:
        `updates` of each step; `reward`, mean over seeds, with `reward_low` and `reward_high`, the
        range; `m2` of active tokens and `masked`, means over seeds; `masked_fraction`, the mean
        over steps; `seconds`, wall-clock sum over seeds. None where a step has no such number.
    """
    metrics = [read_metrics(run) for run in runs]
    reward = _column(metrics, "reward")
    masked = _column(metrics, "masked_fraction").mean(axis=0)
    return {
        "updates": [int(entry["updates"]) for entry in metrics[0]],
        "reward": reward.mean(axis=0).tolist(),
        "reward_low": reward.min(axis=0).tolist(),
        "reward_high": reward.max(axis=0).tolist(),
        "m2": _known(_mean(_column(metrics, "m2"))),
        "masked": masked.tolist(),
        "masked_fraction": float(masked.mean()),
        "seconds": sum(map(seconds_of, runs)),
    }


def details(runs: Sequence[Path]) -> dict[str, Any]:
    """Give what does not fit into a curve, seed by seed, and the statistics beside M2.

    Returns:
        `peak` and `final` reward (the last 12 steps) and `masked_before` and `masked_after` update
        256, one value a seed; means over seeds at each step of `m2_kept`, `ess_fraction`,
        `entropy`, `gradient_norm`; `entropy_by_ratio` over all tokens of all seeds.
    """
    metrics = [read_metrics(run) for run in runs]
    reward, masked = _column(metrics, "reward"), _column(metrics, "masked_fraction")
    updates = np.array([entry["updates"] for entry in metrics[0]])
    late = updates >= 256
    means = ("m2_kept", "m2_all", "ess_fraction", "entropy", "gradient_norm")
    return {
        "peak": reward.max(axis=1).tolist(),
        "final": reward[:, -FINAL_STEPS:].mean(axis=1).tolist(),
        "masked_before": masked[:, ~late].mean(axis=1).tolist(),
        "masked_after": masked[:, late].mean(axis=1).tolist() if late.any() else None,
        **{name: _known(_mean(_column(metrics, name))) for name in means},
        "entropy_by_ratio": entropy_by_ratio([run / LOG for run in runs]),
    }


def entropy_by_ratio(logs: Sequence[Path]) -> dict[str, Any]:
    """Mean entropy of the sampling distribution by |r - 1|, r = current/behavior.

    Returns:
        `low` and `high` edges of the bins, mean `entropy` in nats (None for an empty bin) and
        `tokens` counted.
    """
    bins = len(RATIO_EDGES) - 1
    total, count = np.zeros(bins), np.zeros(bins, np.int64)
    for batch in (batch for log in logs for batch in open_log(str(log))):
        keep = np.asarray(batch.keep)
        distance = np.abs(np.expm1(np.asarray(batch.log_ratio("current/behavior"))[keep]))
        place = np.searchsorted(RATIO_EDGES, distance, side="right") - 1
        inside = place < bins
        entropy = np.asarray(batch.entropy)[keep][inside]
        total += np.bincount(place[inside], weights=entropy, minlength=bins)
        count += np.bincount(place[inside], minlength=bins)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    low, high = RATIO_EDGES[:-1].tolist(), RATIO_EDGES[1:].tolist()
    return {"low": low, "high": high, "entropy": _known(mean), "tokens": count.tolist()}


def _column(metrics: Sequence[Sequence[Mapping[str, float]]], name: str) -> NDArray[np.float64]:
    """(seeds, steps)."""
    return np.array([[entry[name] for entry in one] for one in metrics], dtype=np.float64)


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the seeds that have a number; NaN where none has."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _known(values: NDArray[np.float64]) -> list[float | None]:
    return [float(v) if np.isfinite(v) else None for v in values]
