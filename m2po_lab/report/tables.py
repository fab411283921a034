"""Tables of statistics, as columns: one ratio in full, breakdowns, quadrants."""

from collections.abc import Callable, Sequence
from typing import Any

from m2po_lab.report.format import ABSENT, count, interval, number, percent
from m2po_lab.report.grid import Column
from m2po_lab.report.vocabulary import QUADRANTS, STATISTIC_LINES, SUBSETS, Stats

MOST_LINES = 12
MOST_ON_PAGE = 24
"""A breakdown longer than this is thinned, in a terminal and on the page; the JSON has it all."""

_WRITERS: dict[str, Callable[[Any], str]] = {"n": count, "top1pct_m2_share": percent}

_BREAKDOWN: tuple[tuple[str, str, int], ...] = (
    ("n", "n", 0),
    ("m2", "M2", 0),
    ("95 %", "95 %", 3),
    ("k1", "k1", 0),
    ("ess_fraction", "ESS/n", 0),
    ("chi2", "chi2", 2),
    ("top1pct_m2_share", "top 1 %", 0),
    ("log_ratio_min", "min d", 0),
    ("log_ratio_max", "max d", 0),
)
"""Field, head, drop order. ESS never stands without M2, k1, both tails and the top 1 %."""


def cell(stats: Stats, name: str, digits: int = 4) -> str:
    """Write one statistic of one token set."""
    if name == "95 %":
        return interval(stats["m2_low"], stats["m2_high"])
    if name in _WRITERS:
        return _WRITERS[name](stats[name])
    return number(stats[name], digits)


def ratio_table(ratio: dict[str, Any]) -> list[Column]:
    """Lay one ratio out with a statistic a line and a token set a column."""
    sets = [(head, ratio[field]) for field, head in SUBSETS]
    sequence = ratio["sequence"] or {"product": None, "geometric": None}
    sets += [("row prod", sequence["product"]), ("row geo", sequence["geometric"])]
    names, shorts, meanings = zip(*STATISTIC_LINES, strict=True)
    return [
        Column("", shorts, left=True),
        Column("", meanings, left=True, style="dim", drop=1),
        *(Column(head, [cell(s, n) for n in names]) for head, s in sets if s is not None),
    ]


def breakdown(head: str, lines: Sequence[tuple[str, Stats]]) -> list[Column]:
    """Lay out a token set a line, the columns that must stand together side by side."""
    columns = [Column(head, [label for label, _ in lines], left=True)]
    for name, short, drop in _BREAKDOWN:
        digits = 4 if name == "m2" else 3
        columns.append(Column(short, [cell(s, name, digits) for _, s in lines], drop=drop))
    return columns


def thinned(lines: Sequence[Stats], most: int = MOST_LINES) -> list[Stats]:
    """Pick at most `most` lines: the first, the last, the largest M2, and evenly spaced ones."""
    if len(lines) <= most:
        return list(lines)
    last = len(lines) - 1
    peak = max(range(len(lines)), key=lambda i: lines[i]["m2"] or 0.0)
    spaced = {round(i * last / (most - 2)) for i in range(most - 1)}
    return [lines[i] for i in sorted(spaced | {peak})]


def quadrant_table(quadrants: dict[str, Stats]) -> list[Column]:
    """Lay out where the tokens and where the sum of d² lie, by sign of advantage and side of r."""
    sets = [quadrants[name] for name, _ in QUADRANTS]
    n = sum(s["n"] for s in sets)
    mass = sum(s["n"] * (s["m2"] or 0.0) for s in sets)
    shares = [percent(s["n"] / n) if n else ABSENT for s in sets]
    masses = [percent(s["n"] * (s["m2"] or 0.0) / mass) if mass else ABSENT for s in sets]
    columns = [
        Column("quadrant", [name.replace(",", ", ") for name, _ in QUADRANTS], left=True),
        Column("", [meaning for _, meaning in QUADRANTS], left=True, style="dim", drop=2),
        Column("n", [cell(s, "n") for s in sets]),
        Column("tokens", shares),
        Column("of all d²", masses),
    ]
    for field, head in (("m2", "M2"), ("k1", "k1"), ("log_ratio_min", "min d")):
        columns.append(Column(head, [cell(s, field, 3) for s in sets]))
    columns.append(Column("max d", [cell(s, "log_ratio_max", 3) for s in sets]))
    return columns
