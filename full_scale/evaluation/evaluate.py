"""Samples -> avg@k and pass@k by set, their mean, and how they compare with the paper's row."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np

from full_scale.data.sets import EVALUATION, SETS
from full_scale.errors import UnusableError
from full_scale.evaluation.estimate import (
    CONFIDENCE,
    Estimate,
    Values,
    average,
    mean_of_sets,
    over_problems,
    pass_at,
)
from full_scale.evaluation.generations import Sample
from full_scale.evaluation.paper import SOURCE, Published, published

SCHEMA = "m2po-lab/eval/1"
PERCENT = 100.0

Counts = dict[str, tuple[int, int]]
"""Problem -> right samples, all samples."""


def scored(samples: Sequence[Sample]) -> list[Sample]:
    """Let the reward judge those that have no score, all at the same time.

    Raises:
        UnusableError: one has neither a score nor a response with its right answer.
    """
    from full_scale.reward import compute_scores

    open_ones = [i for i, sample in enumerate(samples) if sample.right is None]
    for i in open_ones:
        if samples[i].response is None or samples[i].truth is None:
            missing = "response" if samples[i].response is None else "right answer"
            remedy = "add it, or --data FOLDER with the prepared sets"
            raise UnusableError(samples[i].place, f"has no score and no {missing}", remedy)
    judged = compute_scores(
        [str(samples[i].dataset) for i in open_ones],
        [str(samples[i].response) for i in open_ones],
        [str(samples[i].truth) for i in open_ones],
    )
    done = list(samples)
    for i, found in zip(open_ones, judged, strict=True):
        done[i] = replace(samples[i], right=found["acc"] == 1)
    return done


def counted(samples: Iterable[Sample]) -> dict[str, Counts]:
    """Count right and all samples of each problem, by set."""
    counts: defaultdict[str, Counts] = defaultdict(dict)
    for sample in samples:
        problems = counts[str(sample.dataset)]
        right, total = problems.get(sample.problem, (0, 0))
        problems[sample.problem] = (right + bool(sample.right), total + 1)
    order = [*EVALUATION, *(name for name in counts if name not in EVALUATION)]
    return {name: counts[name] for name in order if name in counts}


def evaluate(
    counts: Mapping[str, Counts],
    *,
    ks: Sequence[int] = (),
    recipe: str | None = None,
    step: int | None = None,
) -> dict[str, Any]:
    """Estimate everything; percentages, null where a number cannot be had.

    Args:
        counts: right and all samples of each problem, by set.
        ks: for pass@k; 1, 2, 4, ... up to the samples of a set by default.
        recipe: recipe whose run made the samples, for the comparison with the paper.
        step: training step of the model.

    Returns:
        A dictionary of schema `m2po-lab/eval/1`.
    """
    row = published(recipe) if recipe else None
    missing: list[dict[str, str]] = []
    sets, means = {}, {}
    for name, problems in counts.items():
        right, total = (np.array(column) for column in zip(*problems.values(), strict=True))
        means[name] = average(right, total)
        sets[name] = {
            "label": SETS[name].label if name in SETS else name,
            "problems": len(total),
            "published": SETS[name].rows if name in SETS else None,
            "samples": {"all": int(total.sum()), "min": int(total.min()), "max": int(total.max())},
            "avg": {"k": _k(total), **_percent(over_problems(means[name]))},
            "pass": _passes(name, right, total, ks, missing),
            **_compared(over_problems(means[name]), row and row.sets.get(name)),
        }
    return {
        "schema": SCHEMA,
        "version": version("m2po-lab"),
        "recipe": recipe,
        "step": step,
        "confidence": CONFIDENCE,
        "sets": sets,
        "average": _average(means, row, missing),
        "paper": SOURCE if row else None,
        "not_computable": missing,
    }


def _k(total: Any) -> int | None:
    """Samples of each problem; None where they differ."""
    return int(total.min()) if total.min() == total.max() else None


def _passes(
    name: str, right: Any, total: Any, ks: Sequence[int], missing: list[dict[str, str]]
) -> list[dict[str, Any]]:
    least = int(total.min())
    wanted = ks or [1 << i for i in range(least.bit_length())]
    found = []
    for k in wanted:
        if k > least:
            needs = f"{k} samples of every problem; one has {least}"
            missing.append({"what": f"{name} pass@{k}", "needs": needs})
            found.append({"k": k, "percent": None, "low": None, "high": None})
        else:
            found.append({"k": k, **_percent(over_problems(pass_at(right, total, k)))})
    return found


def _average(
    means: Mapping[str, Values], row: Published | None, missing: list[dict[str, str]]
) -> dict[str, Any]:
    """Mean over the eight sets; null as long as one is missing, for it would be another mean."""
    absent = [SETS[name].label for name in EVALUATION if name not in means]
    if absent:
        missing.append({"what": "average", "needs": f"generations of {', '.join(absent)}"})
        return {**_percent(mean_of_sets([])), **_compared(mean_of_sets([]), row and row.average)}
    mean = mean_of_sets([means[name] for name in EVALUATION])
    return {**_percent(mean), **_compared(mean, row and row.average)}


def _percent(estimate: Estimate) -> dict[str, Any]:
    value, low, high = (None if math.isnan(number) else PERCENT * number for number in estimate)
    return {"percent": value, "low": low, "high": high}


def _compared(estimate: Estimate, paper: float | None) -> dict[str, Any]:
    """The paper's number, ours minus it, and whether it lies in our interval."""
    ours = _percent(estimate)
    if paper is None or ours["percent"] is None or ours["low"] is None or ours["high"] is None:
        return {"paper": paper, "difference": None, "paper_inside": None}
    return {
        "paper": paper,
        "difference": ours["percent"] - paper,
        # A published number is rounded to a tenth.
        "paper_inside": ours["low"] - 0.05 <= paper <= ours["high"] + 0.05,
    }
