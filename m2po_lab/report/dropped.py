"""Which tokens lose their gradient: by probability, by entropy, and whether methods agree."""

from collections.abc import Iterator, Sequence
from typing import Any

from m2po_lab.report.alike import Alike, alike
from m2po_lab.report.format import count, number, percent
from m2po_lab.report.grid import Column
from m2po_lab.report.items import Grid, Item, Plot, Report, View, Words
from m2po_lab.report.objectives import ELSEWHERE, leading

MOST_GROUPS = 5
"""Sets of dropped tokens a table compares with each; the page lists all, its figure has all."""
BINS = {"probability": "probability under behavior", "entropy": "entropy in nats"}


def who_drops_what(report: Report, view: View) -> Iterator[Item]:
    """Compare the dropped sets with each other, then say in which bins they lie."""
    groups = alike(report["overlap"], leading(report))
    if not groups:
        return
    shown = groups if view.whole else groups[:MOST_GROUPS]
    rest = "" if len(shown) == len(groups) else f"; {len(shown)} of {len(groups)} sets, {ELSEWHERE}"
    if len(groups) > 1:
        yield Words(
            "Objectives on one line drop the same tokens. Between lines: tokens that both drop "
            "over tokens that either drops (Jaccard index), 1 for the same set, 0 for nothing in "
            "common.",
            tone="aside",
        )
        caption = f"Which objectives drop the same tokens{rest}"
        yield Grid(_overlap(report["overlap"], shown), caption)
        yield Plot("overlap")
    for kind, words in BINS.items():
        table = _lost(report["objectives"], shown, f"lost_by_{kind}")
        if table:
            yield Grid(table, f"Which tokens lose their gradient, by {words}{rest}")
            yield Plot(f"lost_by_{kind}")


def _overlap(overlap: dict[str, Any], groups: Sequence[Alike]) -> list[Column]:
    heads = [str(i + 1) for i in range(len(groups))]
    columns = [
        Column("objectives", [", ".join(group.names) for group in groups], left=True, long=True),
        Column("drop", [count(group.dropped) for group in groups]),
        Column("set", heads),
    ]
    for head, other in zip(heads[:MOST_GROUPS], groups, strict=False):
        shares = [overlap["jaccard"][group.at][other.at] for group in groups]
        columns.append(Column(head, [number(share, 2) for share in shares]))
    return columns


def _lost(objectives: dict[str, Any], groups: Sequence[Alike], field: str) -> list[Column] | None:
    """Share of the tokens of each bin that a set holds; bins without a token are left out."""
    lines = [objectives[group.names[0]].get(field) for group in groups]
    if not lines or any(line is None for line in lines):
        return None
    filled = [i for i, cell in enumerate(lines[0]) if cell["n"]]
    columns = [Column("dropped by", ["(tokens)", *(g.short for g in groups)], left=True)]
    for i in filled:
        shares = [percent(line[i]["fraction"]) for line in lines]
        columns.append(Column(span(lines[0][i]), [count(lines[0][i]["n"]), *shares]))
    return columns


def span(cell: dict[str, Any]) -> str:
    """Name a bin by its edges."""
    low, high = number(cell["low"], 3), cell["high"]
    return f"{low} up" if high is None else f"{low}-{number(high, 3)}"
