"""How far off-policy the tokens are, and where."""

from collections.abc import Iterator
from typing import Any

from m2po_lab.report import tables
from m2po_lab.report.format import number, percent
from m2po_lab.report.items import Cards, Grid, Item, Plot, Report, View, Words
from m2po_lab.report.metrics import what_the_trainer_logged
from m2po_lab.report.vocabulary import SUBSETS, Stats
from m2po_lab.report.worst import worst_tokens

HEADLINE = (
    ("M2", "m2", "mean of d², all tokens", number),
    ("ESS/n", "ess_fraction", "worth of the weights r; blind to r -> 0", number),
    ("k1", "k1", "KL estimate, -mean of d", number),
    ("min d", "log_ratio_min", "lower tail", number),
    ("max d", "log_ratio_max", "upper tail", number),
    ("top 1 %", "top1pct_m2_share", "share of M2 in the 1 % largest |d|", percent),
)
"""The numbers that must stand together."""


def how_far(report: Report, view: View) -> Iterator[Item]:
    """Lay out the primary ratio in full, its breakdowns, then the other ratios in brief."""
    primary = report["primary"]
    if primary is None:
        yield Words("Not computable: it needs two log-prob columns of the same tokens.")
        yield from what_the_trainer_logged(report)
        return
    top, bottom = primary.split("/")
    yield Words(
        f"d = log({top} / {bottom}) of a sampled token's probability under the two policies, in "
        "nats; r = e^d; on policy d = 0. A is the advantage. active: A>0 with r>1 or A<0 with r<1, "
        "where a trust region (a clip, a mask) acts. row prod, row geo: one value a response, the "
        "sum or the mean of its d.",
        tone="aside",
    )
    ratio = report["ratios"][primary]
    yield Cards([(head, write(ratio["all"][field]), text) for head, field, text, write in HEADLINE])
    if ratio["active"] is None:
        yield Words("active and A != 0: not computable, needs advantages.", tone="aside")
    yield Grid(tables.ratio_table(ratio), f"{primary}, per token over the loss mask")
    yield Plot("log_ratio")
    for kind in view.by:
        yield from _breakdown(ratio, kind, primary, view)
        yield Plot(f"by_{kind}")
    yield from _others(report)
    yield from worst_tokens(report, bottom, top)
    yield from _attribution(report["attribution"])
    yield from what_the_trainer_logged(report)


def _breakdown(ratio: dict[str, Any], kind: str, name: str, view: View) -> Iterator[Item]:
    found = ratio[f"by_{kind}"]
    if not found:
        return
    if kind == "quadrant":
        yield Grid(tables.quadrant_table(found), f"By quadrant ({name}, tokens)")
        return
    shown = tables.thinned(found, tables.MOST_ON_PAGE if view.whole else tables.MOST_LINES)
    part = f"; {len(shown)} of {len(found)} lines, the largest M2 among them"
    note = part if len(shown) < len(found) else ""
    yield Grid(
        tables.breakdown(kind, [(label(kind, line), line) for line in shown]),
        f"By {kind} ({name}, all counted tokens{note})",
    )


def label(kind: str, line: Stats) -> str:
    """Name a line of a breakdown: its step, its lag, or its range."""
    if kind in ("step", "lag"):
        return str(line[kind])
    low, high = line["low"], line["high"]
    if kind == "position":
        return str(low) if low == high else f"{low}-{'' if high is None else high}"
    return f"{number(low, 3)} to {number(high, 3)}"


def _others(report: Report) -> Iterator[Item]:
    others = [name for name in report["ratios"] if name != report["primary"]]
    lines = [
        (f"{name} {head}", stats)
        for name in others
        for field, head in SUBSETS
        if (stats := report["ratios"][name][field]) is not None
    ]
    if lines:
        yield Grid(tables.breakdown("", lines), "The other ratios (per token)")


def _attribution(attribution: dict[str, Any] | None) -> Iterator[Item]:
    if attribution is None:
        return
    if not attribution["separable"]:
        yield Words("staleness and engine mismatch cannot be told apart.", lead="No versions: ")
        return
    parts = (
        ("at lag 0", attribution["floor_lag0"]),
        ("added by staleness", attribution["staleness"]),
        ("inside the step", attribution["in_step"]),
    )
    text = ", ".join(f"{number(value)} {words}" for words, value in parts if value is not None)
    if not text:
        return
    yield Words(f"{text}.", lead="Where M2 comes from: ")
