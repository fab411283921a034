"""What the trainer itself logged: the metrics that speak of stability, and how they moved."""

import re
from collections.abc import Iterator
from typing import Any

from m2po_lab.report.format import count, number, plain
from m2po_lab.report.grid import Column
from m2po_lab.report.items import Grid, Item, Plot, Report, Words

MOST_METRICS = 14
"""Metrics shown; the JSON holds every one."""

TELLING = (
    r"(?:^|/)(?:reward|rewards/mean|score/mean|reward/total|correct)$",
    r"entropy",
    r"k3|kl|chi2|(?:^|[/_])ess",
    r"clip_?frac|clip_ratio",
    r"grad_?norm",
    r"probs?_(?:diff|corr)|pearson|log_ppl_(?:abs_)?diff$|mismatch",
    r"zero_std|all_bad|all_good",
    r"(?:^|/)(?:loss|pg_loss)$",
    r"length/?(?:_?mean)$",
)
"""What to show first, as patterns of metric names."""
BY_VERSION = ("trl-metrics",)
"""Frameworks whose logged step is a trainer version, up to an offset."""
_SILENT = re.compile(r"(?:^|/)(?:tim(?:e|ing)|perf|num_turns|training/epoch)|(?:max|min|std)$")


def telling(metrics: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Pick the metrics to show, in the order of TELLING; all if none of them is there."""
    loud = [m for m in metrics or [] if not _SILENT.search(m["name"]) and m["n"] > 1]
    found = [m for pattern in TELLING for m in loud if re.search(pattern, m["name"])]
    unique = {(m["source"], m["name"]): m for m in (found or loud)}
    return list(unique.values())[:MOST_METRICS]


def what_the_trainer_logged(report: Report) -> Iterator[Item]:
    """Lay out first, last, range and trend of the telling metrics, and how steps were joined."""
    metrics = report["metrics"]
    shown = telling(metrics if isinstance(metrics, list) else None)
    if not shown:
        return
    of = f"{len(shown)} of {len(metrics)} metrics; the JSON has all"
    yield Grid(_table(shown), f"What the trainer logged ({of})")
    yield Plot("metrics")
    fullest = {m["source"]: m for m in sorted(metrics, key=lambda m: m.get("shared_steps", 0))}
    for source, metric in fullest.items():
        yield from _joined(report, plain(source), metric)


def joins(report: Report, metric: dict[str, Any]) -> bool:
    """Whether a metric's steps are known to be steps of the tokens.

    Tokens without a step of their own have the trainer's version for one. It counts updates, and a
    metric file may count rollout batches; only of some frameworks is it known how the two meet.
    """
    named = any("step" in source["columns"] for source in report["inputs"] if source["tokens"])
    known = named or metric["framework"] in BY_VERSION
    return bool(metric.get("shared_steps")) and known


def _joined(report: Report, source: str, metric: dict[str, Any]) -> Iterator[Item]:
    """Say how the steps of a metric file meet those of the tokens, if they do."""
    shared, offset = metric.get("shared_steps", 0), metric.get("step_offset", 0)
    if not shared or report["primary"] is None:
        return
    if not joins(report, metric):
        yield Words(
            f"{source} is not joined to the tokens: their steps are trainer versions, and nothing "
            "says which of its steps they belong to.",
            tone="aside",
        )
        return
    steps = len(report["ratios"][report["primary"]]["by_step"] or [])
    ahead = f"; its steps are {offset} ahead of the tokens'" if offset else ""
    yield Words(
        f"{source} is joined to the tokens by step: {count(shared)} of their {count(steps)} steps "
        f"are in it{ahead}.",
        tone="aside",
    )


def _table(metrics: list[dict[str, Any]]) -> list[Column]:
    def values(name: str) -> list[str]:
        return [number(m.get(name)) for m in metrics]

    bad = [count(m.get("non_finite") or 0) for m in metrics]
    return [
        Column("metric", [plain(m["name"], limit=44) for m in metrics], left=True),
        Column("n", [count(m["n"]) for m in metrics], drop=2),
        Column("first", values("first")),
        Column("last", values("last")),
        Column("low", values("low"), drop=1),
        Column("high", values("high"), drop=1),
        Column("trend", [number(m.get("trend"), 2) for m in metrics]),
        *([Column("not finite", bad)] if any(m.get("non_finite") for m in metrics) else []),
    ]
