"""What each trust region would do to these tokens, as tables and sentences."""

from collections.abc import Iterator, Sequence
from typing import Any

from m2po_lab.report.dropped import who_drops_what
from m2po_lab.report.format import count, number, percent, plain
from m2po_lab.report.grid import Column
from m2po_lab.report.items import Grid, Item, Plot, Report, View, Words
from m2po_lab.report.objectives import ELSEWHERE, MOST_OBJECTIVES, computable, objective_table
from m2po_lab.report.sources import remarks_on

SHOWN = {
    "clip": (0.01, 0.05, 0.1, 0.2, 0.28, 0.5, 1.0, 4.0),
    "budget": (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 1.28),
}
"""Points of a sweep that are shown; the JSON holds every one."""

_SWEEPS = {
    "clip": ("clip at eps", "no gradient", "eps", "fraction"),
    "budget": ("M2PO at budget", "masked", "budget", "masked_fraction"),
}


def trust_regions(report: Report, view: View) -> Iterator[Item]:
    """Compare the objectives, then show the sweeps and how stale the data could get."""
    objectives, names = report["objectives"] or {}, computable(report)
    for source in report["inputs"]:
        yield from remarks_on(source, "trust region")
    if not names:
        yield Words("Not computable: it needs two log-prob columns and, mostly, advantages.")
        return
    yield Words(_explained(objectives, names), tone="aside")
    shown = names if view.whole else names[:MOST_OBJECTIVES]
    rest = f"; {len(shown)} of {len(names)}, {ELSEWHERE}" if len(shown) < len(names) else ""
    caption = f"Objectives, on {_which(objectives, names)}{rest}"
    yield Grid(objective_table(objectives, shown), caption)
    yield Plot("objectives")
    sweeps = [kind for kind in _SWEEPS if (report["sweeps"] or {}).get(kind)]
    for kind in sweeps:
        yield Grid(sweep_table(report["sweeps"], kind))
    if objectives.get("m2po"):
        yield Words(m2po_sentence(objectives["m2po"], budget_of(report)))
    for kind in sweeps:
        yield Plot(f"{kind}_sweep")
    yield from who_drops_what(report, view)
    if report["reach"]:
        yield Words("", lead="How stale could the data get")
        for text in reach_lines(report["reach"]):
            yield Words(text)


def _explained(objectives: dict[str, Any], names: Sequence[str]) -> str:
    """What a trust region is, and what the columns of the table mean."""
    rule = (
        "A trust region drops tokens that are too far off policy. A clip drops them one by one; "
        "M2PO masks the largest |d| among active tokens until their M2 is within the budget. "
    )
    if all(objectives[name].get("mass_kept") is None for name in names):
        return rule + (
            "no gradient: share of the counted tokens that are dropped, whatever the advantage. "
            "w: weight of the advantage in the gradient, dropped tokens as 0."
        )
    return rule + (
        "no gradient: share of the counted tokens with A != 0 that are dropped, then by the sign "
        "of A. w: weight of A in the gradient, over tokens with A != 0, dropped ones as 0. mass "
        "kept: sum |w A| over sum r|A|, the unclipped one's. variance: that of w A over that of "
        "r A."
    )


def _which(objectives: dict[str, Any], names: Sequence[str]) -> str:
    """Which tokens the objectives were judged on."""
    sampled = [objectives[n]["tokens"] for n in names if objectives[n].get("exact") is False]
    return f"a sample of {count(min(sampled))} tokens" if sampled else "the counted tokens"


def budget_of(report: Report) -> float | None:
    """The budget M2PO was given, if the report says so."""
    params = (report["objectives"].get("m2po") or {}).get("params") or {}
    value: float | None = params.get("budget")
    return value


def m2po_sentence(result: dict[str, Any], budget: float | None) -> str:
    """Say what M2PO would mask, at which threshold, and within which scope."""
    active, masked = result.get("active"), result.get("masked")
    if active is None or masked is None:
        return "M2PO: not computable on this log."
    limit = f"budget {number(budget)}, " if budget is not None else ""
    head = f"M2PO ({limit}scope {result.get('scope') or 'whole log'}): "
    before = f"{count(active)} active tokens with M2 {number(result.get('m2_before'))}"
    if masked == 0:
        return f"{head}{before}, within the budget; nothing is masked."
    low, high = result.get("masked_low"), result.get("masked_high")
    bracket = f" (between {count(low)} and {count(high)})" if low != high else ""
    edge = result.get("threshold")
    where = f" (each with |d| of {number(edge)} or more)" if edge is not None else ""
    return (
        f"{head}{before}; masks {count(masked)}{bracket} of them{where}, "
        f"which leaves M2 {number(result.get('m2_after'))}."
    )


def sweep_table(sweeps: dict[str, Any], kind: str) -> list[Column]:
    """Lay out the share of tokens without a gradient at each eps of a clip or budget of M2PO."""
    head, line, x, y = _SWEEPS[kind]
    points = sweeps[kind]
    shown = [p for p in points if p[x] in SHOWN[kind]] or list(points)[: len(SHOWN[kind])]
    columns = [Column(head, [line], left=True)]
    columns += [Column(number(p[x], 3), [percent(p[y])], drop=i) for i, p in enumerate(shown)]
    return columns


def reach_lines(reach: Sequence[dict[str, Any]]) -> list[str]:
    """Say for each criterion at which lag this run would meet it, or why there is no answer."""
    lines = []
    for item in reach:
        if item["lag"] is None:
            answer = plain(item.get("note") or "not within what this log supports")
        else:
            low, high = item["low"], item["high"]
            known = low is not None or high is not None
            ends = [number(end, 3) if end is not None else "?" for end in (low, high)]
            span = f" (95 %: {ends[0]} to {ends[1]})" if known else ""
            answer = f"at lag {number(item['lag'], 3)}{span}"
        lines.append(f"{plain(item['criterion'])}: {answer}.")
    return lines
