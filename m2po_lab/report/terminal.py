"""The report as text for a terminal of at most 100 columns; it reads the report dictionary only."""

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from m2po_lab.report.grid import fit
from m2po_lab.report.items import Context, Grid, Item, Judgement, Plot, Words
from m2po_lab.report.outline import DEFAULT_BY, Document, document

WIDEST = 100
NARROWEST = 60
INDENT = 2
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
    return write(document(report, by), width=width, color=color)


def write(laid_out: Document, *, width: int = WIDEST, color: bool = False) -> str:
    """Write a document as text of at most `width` columns."""
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
        for renderable in _lines(laid_out, console.width - INDENT):
            console.print(renderable)
    return _LINE_END.sub(lambda end: "".join(_STYLE.findall(end[0])), capture.get())


def _lines(laid_out: Document, width: int) -> Iterator[RenderableType]:
    yield Text.assemble(("M2PO Lab", "bold"), f" {laid_out.version}")
    if laid_out.partial:
        yield Text(
            "PARTIAL: reading stopped early; this covers what was read.", style="bold yellow"
        )
    for part in laid_out.parts:
        yield Text()
        yield Text(part.title, style="bold underline")
        before: Item | None = None
        for item in part.content:
            for renderable in _shown(item, before, width):
                yield Padding(renderable, (0, 0, 0, INDENT))
            before = before if isinstance(item, Plot | Context) else item
    if laid_out.counts:
        yield Text()
        counts = ", ".join(text for _, text in laid_out.counts)
        yield Text.assemble((f"{counts}.", "bold"), f" {laid_out.last}")


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
