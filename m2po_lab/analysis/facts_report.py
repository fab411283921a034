"""Facts -> the report's reward, lengths, groups and entropy; null where the log has none."""

import math
from typing import Any

import numpy as np

from m2po_lab.analysis.bins import Array
from m2po_lab.analysis.facts import Facts
from m2po_lab.analysis.finish import finite
from m2po_lab.analysis.keyed import Keyed
from m2po_lab.logs.rows import UNKNOWN

Report = dict[str, Any]


def ratio(top: float, bottom: float) -> float | None:
    """Top / bottom, null where the bottom is 0."""
    return float(top) / float(bottom) if bottom else None


def spread(n: float, total: float, square: float) -> float | None:
    """Population standard deviation from sums; null for nothing."""
    if not n:
        return None
    return math.sqrt(max(square / n - (total / n) ** 2, 0.0))


def _sum(table: Keyed, name: str) -> float:
    return table.field(name).sum().item()  # type: ignore[no-any-return]


def _steps(facts: Facts, counted: str) -> list[tuple[int, int]]:
    """(step, row of the table) of steps with something to say, ascending."""
    table = facts.steps
    keys = [k for k in table.sorted_keys() if k != UNKNOWN]
    at = {key: i for i, key in enumerate(table.keys)}
    return [(key, at[key]) for key in keys if table.field(counted)[at[key]] > 0]


def entropy_report(facts: Facts) -> Report | None:
    """Mean entropy of kept tokens in nats, in all and by step."""
    table = facts.steps
    n = _sum(table, "entropy_n")
    if not n:
        return None
    count, total = table.field("entropy_n"), table.field("entropy")
    by_step = [
        {"step": step, "n": int(count[i]), "mean": ratio(total[i], count[i])}
        for step, i in _steps(facts, "entropy_n")
    ]
    return {"n": n, "mean": ratio(_sum(table, "entropy"), n), "by_step": by_step or None}


def reward_report(facts: Facts) -> Report | None:
    """Rewards of rows, in all and by step; std is that of the population."""
    table = facts.steps
    if not _sum(table, "reward_n"):
        return None
    column = {name: table.field(name) for name in table.schema if name.startswith("reward")}
    whole = {
        "reward_low": column["reward_low"].min(),
        "reward_high": column["reward_high"].max(),
        **{n: column[n].sum() for n in ("reward_n", "reward", "reward_square")},
    }
    by_step = [
        {"step": step, **_reward({n: values[i] for n, values in column.items()})}
        for step, i in _steps(facts, "reward_n")
    ]
    return {**_reward(whole), "by_step": by_step or None}


def _reward(sums: dict[str, Array]) -> Report:
    n = int(sums["reward_n"])
    return {
        "n": n,
        "mean": ratio(float(sums["reward"]), n),
        "std": spread(n, float(sums["reward"]), float(sums["reward_square"])),
        "low": finite(float(sums["reward_low"])),
        "high": finite(float(sums["reward_high"])),
    }


def _length(table: Keyed, at: Any) -> Report:
    n, total, square = (table.field(f)[at].sum().item() for f in ("n", "length", "length_square"))
    high = finite(float(np.max(table.field("length_high")[at], initial=-np.inf)))
    return {"n": n, "mean": ratio(total, n), "std": spread(n, total, square), "high": high}


def lengths_report(facts: Facts) -> Report | None:
    """Response lengths by finish reason and by lag, and how length and lag go together.

    `lag_correlation` is Pearson's between a row's length and the lag of its first kept token; null
    where either is constant.
    """
    table = facts.finish
    if not len(table):
        return None
    at = {key: i for i, key in enumerate(table.keys)}
    reasons = [key for key in table.sorted_keys() if key]
    lags = {key: i for i, key in enumerate(facts.lags.keys)}
    by_lag = [{"lag": k, **_length(facts.lags, [lags[k]])} for k in facts.lags.sorted_keys()]
    return {
        "unit": facts.length_unit,
        **_length(table, slice(None)),
        "by_finish_reason": {key: _length(table, [at[key]]) for key in reasons} or None,
        "by_lag": by_lag or None,
        "lag_correlation": lag_correlation(facts.lags),
    }


def lag_correlation(table: Keyed) -> float | None:
    """Pearson correlation of length and lag over rows, in [-1, 1]."""
    lag = np.asarray(table.keys, dtype=np.float64)
    n, total, square = (table.field(f) for f in ("n", "length", "length_square"))
    count = n.sum()
    if count < 2:
        return None
    mean_lag, mean = (n * lag).sum() / count, total.sum() / count
    cross = ((total - n * mean) * (lag - mean_lag)).sum()
    lag_spread = (n * (lag - mean_lag) ** 2).sum()
    length_spread = square.sum() - count * mean**2
    if lag_spread <= 0 or length_spread <= 1e-12 * square.sum():
        return None
    return float(np.clip(cross / np.sqrt(lag_spread * length_spread), -1, 1))


def groups_report(facts: Facts) -> Report | None:
    """Sizes of groups (rows of a step with one group id), constant rewards, mixed prompts.

    `constant_reward` counts groups of at least two rewards that are all equal: no signal for a
    baseline by group; null where no group has two rewards. With more groups than are kept,
    `sampled` is the share that is described.
    """
    table = facts.groups
    if not len(table):
        return None
    rows, rewards = table.field("rows"), table.field("reward_n")
    several = rewards > 1
    constant = several & (table.field("reward_low") == table.field("reward_high"))
    mixed = table.field("prompt_high") > table.field("prompt_low")
    sizes, counts = np.unique(rows, return_counts=True)
    return {
        "by": "group_id" if facts.by_group_id else "prompt",
        "n": len(table),
        "rows": int(rows.sum()),
        "sizes": {str(s): int(c) for s, c in zip(sizes, counts, strict=True)},
        "all_unique": bool((rows == 1).all()),
        "with_rewards": int(several.sum()),
        "constant_reward": int(constant.sum()) if several.any() else None,
        "mixed_prompts": int(mixed.sum()),
        "sampled": 0.5**facts.group_level,
    }


def signal_report(facts: Facts) -> Report | None:
    """Tokens with a known advantage and with one that is not 0, in all and by step."""
    table = facts.steps
    n = _sum(table, "advantage_n")
    if not n:
        return None
    known, some = table.field("advantage_n"), table.field("advantage_nonzero")
    by_step = [
        {"step": step, "n": int(known[i]), "nonzero_fraction": ratio(some[i], known[i])}
        for step, i in _steps(facts, "advantage_n")
    ]
    return {
        "n": n,
        "nonzero_fraction": ratio(_sum(table, "advantage_nonzero"), n),
        "by_step": by_step or None,
    }
