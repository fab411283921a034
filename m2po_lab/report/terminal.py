"""The report as text for a terminal of at most 100 columns.

It answers in this order: what was read, can it be trusted, how far off-policy and where, what each
trust region would do to these tokens, what to look at. It reads the report dictionary only.
"""

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from m2po_lab.report import drift, sources, whatif
from m2po_lab.report.findings import finding_lines, verdict
from m2po_lab.report.grid import fit

WIDEST = 100
NARROWEST = 60
INDENT = 2
BREAKDOWNS = ("lag", "step", "quadrant", "position", "probability")
DEFAULT_BY = ("step", "lag", "quadrant")

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_LINE_END = re.compile(r"(?: |\x1b\[[0-9;]*m)+$", re.MULTILINE)


def render(
    report: dict[str, Any],
    *,
    width: int = WIDEST,
    color: bool = False,
    by: Sequence[str] = DEFAULT_BY,
    budget: float | None = None,
) -> str:
    """Write a report as text.

    Args:
        report: what `Analysis.to_dict()` gives.
        width: columns to fill, held between 60 and 100.
        color: whether to use ANSI styles.
        by: which breakdowns to show, out of BREAKDOWNS.
        budget: M2PO's budget the report was made with, to name it.
    """
    console = Console(
        file=io.StringIO(),
        width=max(NARROWEST, min(WIDEST, width)),
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        for item in _document(report, console.width - INDENT, by, budget):
            console.print(item)
    return _LINE_END.sub(lambda end: "".join(_STYLE.findall(end[0])), capture.get())


def _document(
    report: dict[str, Any], width: int, by: Sequence[str], budget: float | None
) -> Iterator[RenderableType]:
    yield Text.assemble(("M2PO Lab", "bold"), f" {report['version']}")
    if report["partial"]:
        yield Text(
            "PARTIAL: reading stopped early; this covers what was read.", style="bold yellow"
        )
    sections = (
        ("What was read", sources.what_was_read(report)),
        ("Can it be trusted", sources.can_it_be_trusted(report)),
        ("How far off-policy, and where", drift.how_far(report, width, by)),
        ("What each trust region would do to these tokens", _trust_regions(report, width, budget)),
        ("What to look at", finding_lines(report["findings"])),
    )
    for title, items in sections:
        yield Text()
        yield Text(title, style="bold underline")
        for item in items:
            yield Padding(item, (0, 0, 0, INDENT))
    yield Text()
    yield verdict(report["findings"])


def _trust_regions(
    report: dict[str, Any], width: int, budget: float | None
) -> Iterator[RenderableType]:
    objectives = report["objectives"]
    if not whatif.chosen(objectives or {}):
        yield Text(
            "Not computable: it needs two log-prob columns (and advantages for most of them)."
        )
        return
    yield Text(
        "Shares of the counted tokens. A clip drops tokens one by one; M2PO masks the largest |d| "
        "among active tokens until their M2 is within the budget. w is the weight of A in the "
        "gradient; mass kept is the share of sum |A| that still has one.",
        style="dim",
    )
    yield fit(whatif.objective_table(objectives), width)
    if objectives.get("m2po"):
        yield Text()
        yield Text(whatif.m2po_sentence(objectives["m2po"], budget))
    sweeps = report["sweeps"] or {}
    for kind in ("clip", "budget"):
        if sweeps.get(kind):
            yield Text()
            yield fit(whatif.sweep_table(sweeps, kind), width)
    if report["reach"]:
        yield Text()
        yield Text("How stale could the data get", style="bold")
        for line in whatif.reach_lines(report["reach"]):
            yield Text(line)
