"""The report as text for a terminal of at most 100 columns; it reads the report dictionary only."""

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from m2po_lab.report.grid import fit
from m2po_lab.report.items import (
    Cards,
    Context,
    Grid,
    Item,
    Judgement,
    Plot,
    Proof,
    View,
    Words,
)
from m2po_lab.report.outline import DEFAULT_BY, Document, document

WIDEST = 100
NARROWEST = 60
INDENT = 2
STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan", "aside": "dim"}

UNSEEN = (Plot, Context, Cards)
"""What a terminal leaves out."""
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
    return write(document(report, View(by)), width=width, color=color)


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
    yield Text.assemble(("M2PO Lab", "bold"), f" {laid_out.version}: {laid_out.title}")
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
            before = before if isinstance(item, UNSEEN) else item
    if laid_out.last:
        yield Text()
        yield Text(laid_out.last)


def _shown(item: Item, before: Item | None, width: int) -> Iterator[RenderableType]:
    """Render one item; tables and findings stand apart from what is before them."""
    if isinstance(item, UNSEEN):
        return
    if before is not None and _apart(item, before):
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
        head = Text.assemble(
            (item.severity, STYLES[item.severity]), f"  {item.id}: ", (item.title, "bold")
        )
        yield _headed(head, item.message, _led("do: ", item.advice))
    elif isinstance(item, Proof):
        advice, source = _led("do: ", item.advice), _led("source: ", item.source)
        head = Text(item.id, style="bold")
        yield _headed(head, item.message, advice, f"seen: {item.seen}", source)


def _apart(item: Item, before: Item) -> bool:
    """Tables stand apart, findings too unless both are heads only."""
    if isinstance(item, Judgement) and isinstance(before, Judgement):
        return bool(item.message or before.message)
    return isinstance(before, Grid) or isinstance(item, Grid | Judgement)


def _led(lead: str, text: str) -> str:
    return f"{lead}{text}" if text else ""


def _headed(head: Text, *texts: str) -> RenderableType:
    """A head with what belongs to it further in."""
    body = [Text(text) for text in texts if text]
    return Group(head, Padding(Group(*body), (0, 0, 0, INDENT))) if body else head
