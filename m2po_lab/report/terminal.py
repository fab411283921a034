"""The report as text for a terminal of at most 100 columns; it reads the report dictionary only."""

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from m2po_lab.report.findings import by_severity, counted
from m2po_lab.report.grid import fit
from m2po_lab.report.items import Context, Grid, Item, Judgement, Plot, Words
from m2po_lab.report.outline import SECTIONS

WIDEST = 100
NARROWEST = 60
INDENT = 2
BREAKDOWNS = ("lag", "step", "quadrant", "position", "probability")
DEFAULT_BY = ("step", "lag", "quadrant")
STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan", "aside": "dim"}

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_LINE_END = re.compile(r"(?: |\x1b\[[0-9;]*m)+$", re.MULTILINE)


def render(
    report: dict[str, Any],
    *,
    width: int = WIDEST,
    color: bool = False,
    by: Sequence[str] = DEFAULT_BY,
) -> str:
    """Write a report as text.

    Args:
        report: what `Analysis.to_dict()` gives.
        width: columns to fill, held between 60 and 100.
        color: whether to use ANSI styles.
        by: which breakdowns to show, out of BREAKDOWNS.
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
        for renderable in _document(report, console.width - INDENT, by):
            console.print(renderable)
    return _LINE_END.sub(lambda end: "".join(_STYLE.findall(end[0])), capture.get())


def _document(report: dict[str, Any], width: int, by: Sequence[str]) -> Iterator[RenderableType]:
    yield Text.assemble(("M2PO Lab", "bold"), f" {report['version']}")
    if report["partial"]:
        yield Text(
            "PARTIAL: reading stopped early; this covers what was read.", style="bold yellow"
        )
    for section in SECTIONS:
        yield Text()
        yield Text(section.title, style="bold underline")
        before: Item | None = None
        for item in section.items(report, by):
            for renderable in _shown(item, before, width):
                yield Padding(renderable, (0, 0, 0, INDENT))
            before = before if isinstance(item, Plot | Context) else item
    yield Text()
    yield _last_line(report["findings"])


def _shown(item: Item, before: Item | None, width: int) -> Iterator[RenderableType]:
    """Render one item; tables and findings stand apart from what is before them."""
    if isinstance(item, Plot | Context):
        return
    if isinstance(before, Grid) or (before is not None and isinstance(item, Grid | Judgement)):
        yield Text()
    if isinstance(item, Words):
        tone = STYLES.get(item.tone, "")
        text = (item.text, tone if item.tone == "aside" else "")
        yield Text.assemble((item.lead, tone or "bold"), text)
    elif isinstance(item, Grid):
        if item.caption:
            yield Text(item.caption, style="bold")
        yield fit(item.columns, width)
    elif isinstance(item, Judgement):
        yield _judgement(item)


def _judgement(item: Judgement) -> RenderableType:
    body: list[RenderableType] = [Text(item.message), Text(f"seen: {item.seen}", style="dim")]
    if item.advice:
        body.append(Text(f"do: {item.advice}"))
    head = Text.assemble(
        (item.severity, STYLES[item.severity]), f"  {item.id}: ", (item.title, "bold")
    )
    return Group(head, Padding(Group(*body), (0, 0, 0, INDENT)))


def _last_line(findings: list[dict[str, Any]]) -> Text:
    """Count the findings in one line and say how to read more about one."""
    line = Text.assemble((", ".join(text for _, text in counted(findings)) + ".", "bold"))
    if findings:
        first = by_severity(findings)[0]["id"]
        line.append(f" More on one of them: m2po-lab analyze --explain {first}")
    return line
