"""The numbers behind each figure, taken out of the report as rows; nothing is drawn here."""

import itertools
import math
from collections.abc import Callable
from typing import Any

from m2po_lab.report.metrics import joins, telling
from m2po_lab.report.outline import short_names

Rows = list[dict[str, Any]]
Marks = dict[str, float]
Report = dict[str, Any]

METRIC_NAMES = {
    "reward": ("reward", "critic/score/mean", "critic/rewards/mean", "env/all/reward/total"),
    "entropy": ("entropy", "actor/entropy", "optim/entropy"),
}
"""Names in metric files that stand in where the token log lacks the column."""
MOST_PANELS = 5


def breakdown(kind: str) -> Callable[[Report], Rows]:
    """Rows of one breakdown of the primary ratio."""

    def rows(report: Report) -> Rows:
        if report["primary"] is None:
            return []
        found: Rows | None = report["ratios"][report["primary"]][f"by_{kind}"]
        return found or []

    return rows


def steps(report: Report) -> Rows:
    """Statistics by step, joined with reward and entropy by step where the report has them."""
    rows = [dict(row) for row in breakdown("step")(report)]
    for name, metrics in METRIC_NAMES.items():
        facts = report[name]
        by_step = facts.get("by_step") if isinstance(facts, dict) else None
        means = {item["step"]: item.get("mean") for item in by_step or []}
        means = means or _from_metrics(report, metrics)
        for row in rows:
            if means:
                row[name] = means.get(row["step"])
    return rows


def _from_metrics(report: Report, names: tuple[str, ...]) -> dict[int, float | None]:
    """Values of a metric by the step of the token log; empty without such a metric."""
    metrics = report["metrics"] if isinstance(report["metrics"], list) else []
    for metric in metrics:
        if metric["name"] in names and joins(report, metric):
            offset = metric.get("step_offset", 0)
            return {step - offset: value for step, value in metric["points"]}
    return {}


def facts(report: Report) -> Rows:
    """Mean reward and entropy by step, for logs without a ratio."""
    found: dict[int, dict[str, Any]] = {}
    for name in METRIC_NAMES:
        whole = report[name] if isinstance(report[name], dict) else {}
        for line in whole.get("by_step") or []:
            found.setdefault(line["step"], {})[name] = line["mean"]
    names = [name for name in METRIC_NAMES if any(name in line for line in found.values())]
    return [
        {"step": step, **{name: found[step].get(name) for name in names}} for step in sorted(found)
    ]


def metrics(report: Report) -> Rows:
    """Points of the metrics that tell most."""
    found = report["metrics"] if isinstance(report["metrics"], list) else []
    return [
        {"metric": metric["name"], "step": step, "value": value}
        for metric in telling(found)[:MOST_PANELS]
        for step, value in metric["points"]
    ]


def quadrants(report: Report) -> Rows:
    """Share of tokens and share of the sum of d² in each quadrant."""
    if report["primary"] is None:
        return []
    found = report["ratios"][report["primary"]]["by_quadrant"] or {}
    n = sum(s["n"] for s in found.values())
    mass = sum(s["n"] * (s["m2"] or 0.0) for s in found.values())
    if not n or not mass:
        return []
    return [
        {
            "quadrant": name,
            "tokens": s["n"] / n,
            "mass": s["n"] * (s["m2"] or 0.0) / mass,
        }
        for name, s in found.items()
    ]


def sweep(kind: str) -> Callable[[Report], Rows]:
    """Points of a sweep."""
    return lambda report: list((report["sweeps"] or {}).get(kind) or [])


def log_ratio(report: Report) -> Rows:
    """Counts of d a bin, by sign of the advantage, with the bounds of clip and M2PO."""
    found = (report.get("curves") or {}).get("log_ratio")
    if not found:
        return []
    edges = found["edges"]
    counts = {name: n for name, n in found["counts"].items() if any(n)}
    return [
        {"low": low, "high": high, **{name: n[i] for name, n in counts.items()}}
        for i, (low, high) in enumerate(itertools.pairwise(edges))
    ]


def bounds(report: Report) -> Marks:
    """Where the clip of the what-if and M2PO's threshold lie, in nats of d."""
    objectives = report["objectives"] or {}
    params = (objectives.get("ppo") or {}).get("params") or {}
    marks = {}
    if 0 <= (low := params.get("eps_low", -1)) < 1:
        marks["clip, lower"] = math.log1p(-low)
    if (high := params.get("eps_high", -1)) >= 0:
        marks["clip, upper"] = math.log1p(high)
    edge = (objectives.get("m2po") or {}).get("threshold")
    if edge is not None:
        marks |= {"M2PO, lower": -edge, "M2PO, upper": edge}
    return marks


def probabilities(report: Report) -> Rows:
    """Counts of tokens a cell of (probability under the denominator, under the numerator)."""
    found = (report.get("curves") or {}).get("probability")
    if not found:
        return []
    edges, (top, bottom) = found["edges"], found["ratio"].split("/")
    return [
        {
            f"p {bottom}": (edges[i] + edges[i + 1]) / 2,
            f"p {top}": (edges[j] + edges[j + 1]) / 2,
            "n": n,
        }
        for i, j, n in found["cells"]
    ]


def unmarked(report: Report) -> Marks:
    """No marks."""
    return {}


def several(rows: Callable[[Report], Rows]) -> Callable[[Report], Rows]:
    """The same rows, or none if there is only one: a curve needs two points."""
    return lambda report: found if len(found := rows(report)) > 1 else []


def runs_by(kind: str) -> Callable[[Report], Rows]:
    """M2 with its interval by lag or step, of each run of a comparison."""

    def rows(comparison: Report) -> Rows:
        ratio = comparison["ratio"]
        if ratio is None:
            return []
        names = short_names([run["name"] for run in comparison["runs"]])
        return [
            {
                "run": name,
                kind: line[kind],
                **{name: line[name] for name in ("m2", "m2_low", "m2_high")},
            }
            for name, run in zip(names, comparison["runs"], strict=True)
            for line in run["report"]["ratios"][ratio][f"by_{kind}"] or []
        ]

    return rows
