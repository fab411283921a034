"""What each trust region would do to these tokens, as tables and sentences."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from m2po_lab.report.format import count, number, percent, plain
from m2po_lab.report.grid import Column
from m2po_lab.report.items import Grid, Item, Plot, Report, Words

MOST_OBJECTIVES = 12
"""Objectives shown; the JSON holds every one that can be computed."""

SHOWN = {
    "clip": (0.01, 0.05, 0.1, 0.2, 0.28, 0.5, 1.0, 4.0),
    "budget": (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 1.28),
}
"""Points of a sweep that are shown; the JSON holds every one."""

_COLUMNS: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("no gradient", "zero_gradient_fraction", percent),
    ("at A>0", "binding_fraction_positive", percent),
    ("at A<0", "binding_fraction_negative", percent),
    ("mass kept", "mass_kept", percent),
    ("mean w", "weight_mean", number),
    ("ESS of w", "weight_ess_fraction", number),
)

_SWEEPS = {
    "clip": ("clip at eps", "no gradient", "eps", "fraction"),
    "budget": ("M2PO at budget", "masked", "budget", "masked_fraction"),
}

FIRST = ("ppo", "dapo", "dual_clip", "m2po", "m2po_released", "m2po_areal", "m2po_all_tokens")
"""Shown before the others: the clips, then M2PO and the variants of it that are in use."""


def trust_regions(report: Report, by: Sequence[str] = ()) -> Iterator[Item]:
    """Compare the objectives, then show the sweeps and how stale the data could get."""
    objectives = report["objectives"] or {}
    if not chosen(objectives):
        yield Words("Not computable: it needs two log-prob columns and, mostly, advantages.")
        return
    yield Words(
        "A clip drops tokens one by one; M2PO masks the largest |d| among active tokens until "
        "their M2 is within the budget. no gradient: share of the counted tokens with A != 0 that "
        "are dropped, then by the sign of A. mass kept: share of the unclipped gradient mass "
        "sum r|A| that is left. w: weight of A in the gradient, over tokens with A != 0, dropped "
        "ones as 0.",
        tone="aside",
    )
    yield Grid(objective_table(objectives), f"Objectives, on {_which(objectives)}")
    if objectives.get("m2po"):
        yield Words(m2po_sentence(objectives["m2po"], budget_of(report)))
    for kind in _SWEEPS:
        if (report["sweeps"] or {}).get(kind):
            yield Grid(sweep_table(report["sweeps"], kind))
            yield Plot(f"{kind}_sweep")
    yield Plot("overlap")
    if report["reach"]:
        yield Words("", lead="How stale could the data get")
        for text in reach_lines(report["reach"]):
            yield Words(text)


def _which(objectives: dict[str, Any]) -> str:
    """Which tokens the objectives were judged on."""
    sampled = [
        objectives[name]["tokens"]
        for name in chosen(objectives)
        if objectives[name].get("exact") is False
    ]
    return f"a sample of {count(min(sampled))} tokens" if sampled else "the counted tokens"


def budget_of(report: Report) -> float | None:
    """The budget M2PO was given, if the report says so."""
    params = (report["objectives"].get("m2po") or {}).get("params") or {}
    value: float | None = params.get("budget")
    return value


def chosen(objectives: dict[str, Any]) -> list[str]:
    """Names of the objectives to show: the familiar ones first, then in the order given."""
    names = [name for name, result in objectives.items() if result is not None]
    first = [name for name in FIRST if name in names]
    return (first + [name for name in names if name not in FIRST])[:MOST_OBJECTIVES]


def objective_table(objectives: dict[str, Any]) -> list[Column]:
    """Lay out the share of tokens each objective leaves without a gradient, and its weights."""
    names = chosen(objectives)
    results = [_with_masked_share(objectives[name]) for name in names]
    columns = [Column("objective", names, left=True)]
    for head, field, write in _COLUMNS:
        columns.append(Column(head, [write(result.get(field)) for result in results]))
    return columns


def _with_masked_share(result: dict[str, Any]) -> dict[str, Any]:
    """An objective that masks leaves exactly its masked tokens without a gradient."""
    return {"zero_gradient_fraction": result.get("masked_fraction"), **result}


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
    where = f" (|d| from {number(edge)} up)" if edge is not None else ""
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
