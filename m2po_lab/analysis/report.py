"""Analysis -> the JSON report `m2po-lab/report/1`, without version and findings."""

from collections.abc import Callable
from typing import Any

from m2po_lab.analysis import facts_report
from m2po_lab.analysis.attribution import attribution_report
from m2po_lab.analysis.bins import PROBABILITY_EDGES, QUADRANTS, position_range
from m2po_lab.analysis.cells import Cells
from m2po_lab.analysis.finish import Stats, statistics
from m2po_lab.analysis.judged import judged
from m2po_lab.analysis.missing import not_computable
from m2po_lab.analysis.result import Analysis
from m2po_lab.analysis.tables import SETS, RatioTables
from m2po_lab.analysis.trends import trends_report
from m2po_lab.core.sequence import KINDS
from m2po_lab.logs.rows import UNKNOWN

SCHEMA = "m2po-lab/report/1"


def numbers(analysis: Analysis) -> dict[str, Any]:
    """Return the parts of the report that are computed from tokens and rows."""
    facts, primary, what_if = analysis.facts, analysis.primary, judged(analysis)
    found = {
        "primary": primary,
        "ratios": {
            name: ratio_report(t, analysis.options.by) for name, t in analysis.computable.items()
        },
        "objectives": what_if.objectives,
        "overlap": what_if.overlap,
        "sweeps": what_if.sweeps,
        "reach": what_if.reach,
        "attribution": attribution_report(analysis.computable, analysis.integrity),
        "reward": facts_report.reward_report(facts),
        "lengths": facts_report.lengths_report(facts),
        "groups": facts_report.groups_report(facts),
        "entropy": facts_report.entropy_report(facts),
        "signal": facts_report.signal_report(facts),
        "worst": what_if.worst,
    }
    reasons = {f"ratios/{name}": why for name, why in analysis.integrity.untrusted().items()}
    if analysis.computable:
        reasons |= analysis.integrity.marks.unjudged()
    missing = not_computable(found, analysis.options.by, what_if.missing | reasons)
    return {**found, "not_computable": missing}


def report(analysis: Analysis, numbers: dict[str, Any]) -> dict[str, Any]:
    """Return plain JSON values: no NaN, keys in a fixed order, the same for the same log."""
    return {
        "schema": SCHEMA,
        "partial": analysis.partial,
        "inputs": analysis.inputs,
        "tokens": analysis.integrity.tokens.to_dict(),
        "rows": analysis.integrity.rows.to_dict(analysis.rows["bad"]),
        **{name: value for name, value in numbers.items() if name != "not_computable"},
        "metrics": trends_report(analysis.metrics, _steps(analysis)),
        "not_computable": numbers["not_computable"],
    }


def _steps(analysis: Analysis) -> list[int]:
    """Steps that rows of the token log name."""
    return [step for step in analysis.facts.steps.keys if step != UNKNOWN]


def ratio_report(tables: RatioTables, by: tuple[str, ...]) -> dict[str, Any]:
    """Return one entry of "ratios"; tables that were not asked for (`by`) are null."""
    cells = tables.cells
    knows = tables.knows_advantage
    sets = {n: statistics(tables.set(n))[0] if n == "all" or knows else None for n in SETS}
    quadrants = None
    if knows:
        found = statistics(cells["quadrant"].take(list(range(len(QUADRANTS)))))
        quadrants = dict(zip(QUADRANTS, found, strict=True))
    sequence = statistics(cells["sequence"].take(list(range(len(KINDS)))))
    return {
        **sets,
        "by_quadrant": quadrants,
        "by_step": _table(cells["step"], lambda key: {"step": key}),
        "by_lag": _table(cells["lag"], lambda key: {"lag": key}) if "lag" in by else None,
        "by_position": _table(cells["position"], _position),
        "by_probability": _table(cells["probability"], _probability),
        "sequence": dict(zip(KINDS, sequence, strict=True)),
    }


def _position(key: int) -> dict[str, int]:
    low, high = position_range(key)
    return {"low": low, "high": high}


def _probability(key: int) -> dict[str, float]:
    return {"low": PROBABILITY_EDGES[key], "high": PROBABILITY_EDGES[key + 1]}


def _table(cells: Cells, label: Callable[[int], dict[str, Any]]) -> list[Stats] | None:
    """STATS of every cell, ascending by key, each with its label; None for an empty table."""
    if not len(cells):
        return None
    keys = cells.sorted_keys()
    found = statistics(cells.take(keys))
    return [{**label(key), **stats} for key, stats in zip(keys, found, strict=True)]
