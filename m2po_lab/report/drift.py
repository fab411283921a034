"""The third question of the report: how far off-policy the tokens are, and where."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from m2po_lab.report import tables
from m2po_lab.report.format import count, number
from m2po_lab.report.grid import fit
from m2po_lab.report.vocabulary import SUBSETS, Stats


def how_far(report: dict[str, Any], width: int, by: Sequence[str]) -> Iterator[RenderableType]:
    """Lay out the primary ratio in full, its breakdowns, then the other ratios in brief."""
    primary = report["primary"]
    if primary is None:
        yield Text("Not computable: it needs two log-prob columns of the same tokens.")
        yield from _text_only(report)
        return
    top, bottom = primary.split("/")
    yield Text.assemble(
        (f"{primary}", "bold"),
        f", per token over the loss mask; d = log({top} / {bottom}) in nats, r = e^d, "
        "d = 0 on policy. "
        "active: A>0 with r>1 or A<0 with r<1, where a trust region acts. "
        "row prod, row geo: one value a response, the sum or the mean of its d.",
    )
    ratio = report["ratios"][primary]
    yield fit(tables.ratio_table(ratio), width)
    if ratio["active"] is None:
        yield Text("active and A != 0: not computable, needs advantages.", style="dim")
    yield from _breakdowns(ratio, by, primary, width)
    others = [name for name in report["ratios"] if name != primary]
    if others:
        yield Text()
        yield Text("The other ratios (per token)", style="bold")
        lines = [
            (f"{name} {head}", stats)
            for name in others
            for field, head in SUBSETS
            if (stats := report["ratios"][name][field]) is not None
        ]
        yield fit(tables.breakdown("", lines), width)
    yield from _attribution(report["attribution"])


def _breakdowns(
    ratio: dict[str, Any], by: Sequence[str], name: str, width: int
) -> Iterator[RenderableType]:
    for kind in by:
        if kind == "quadrant":
            if ratio["by_quadrant"] is not None:
                yield Text()
                yield Text(f"By quadrant ({name}, tokens)", style="bold")
                yield fit(tables.quadrant_table(ratio["by_quadrant"]), width)
            continue
        lines = ratio[f"by_{kind}"]
        if not lines:
            continue
        shown = tables.thinned(lines)
        part = f"; {len(shown)} of {len(lines)} lines, the largest M2 among them"
        yield Text()
        yield Text(
            f"By {kind} ({name}, all counted tokens{part if len(shown) < len(lines) else ''})",
            style="bold",
        )
        labelled = [(label(kind, line), line) for line in shown]
        yield fit(tables.breakdown(kind, labelled), width)


def label(kind: str, line: Stats) -> str:
    """Name a line of a breakdown: its step, its lag, or its range."""
    if kind in ("step", "lag"):
        return str(line[kind])
    low, high = line["low"], line["high"]
    if kind == "position":
        return str(low) if low == high else f"{low}-{'' if high is None else high}"
    return f"{number(low, 3)} to {number(high, 3)}"


def _attribution(attribution: dict[str, Any] | None) -> Iterator[RenderableType]:
    if attribution is None:
        return
    if not attribution["separable"]:
        text = "Staleness and engine mismatch cannot be told apart here: no version column."
    else:
        parts = (
            ("at lag 0", attribution["floor_lag0"]),
            ("added by staleness", attribution["staleness"]),
            ("inside the step", attribution["in_step"]),
        )
        text = "Where M2 comes from: " + ", ".join(f"{w} {number(v)}" for w, v in parts) + "."
    yield Text()
    yield Text(text)


def _text_only(report: dict[str, Any]) -> Iterator[RenderableType]:
    """What a log without log-probs still tells."""
    for name in ("reward", "lengths"):
        facts = report[name]
        if isinstance(facts, dict):
            known = {k: v for k, v in facts.items() if isinstance(v, int | float)}
            shown = ", ".join(
                f"{k} {count(v) if isinstance(v, int) else number(v)}" for k, v in known.items()
            )
            if shown:
                yield Text(f"{name}: {shown}")
