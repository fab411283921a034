"""The report as one HTML file: no script, no network, every word from a log escaped.

The content policy of the page allows nothing but its own style sheet, named by its hash. Figures
are inline SVG made from numbers; text from a log reaches the page through autoescaped fields only.
"""

import base64
import hashlib
from collections.abc import Container, Iterator, Sequence
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from m2po_lab.report.grid import Column
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
from m2po_lab.report.outline import BREAKDOWNS, Document, document
from m2po_lab.report.plots import Drawn

KINDS: dict[type[Item], str] = {
    Words: "words",
    Grid: "table",
    Plot: "figure",
    Cards: "cards",
    Context: "context",
    Judgement: "finding",
    Proof: "proof",
}
TOGETHER = (Plot, Context, Judgement, Proof)
"""Items of one of these kinds in a row stand side by side where the page is wide enough."""


def page(
    report: dict[str, Any], drawn: Sequence[Drawn] = (), by: Sequence[str] = BREAKDOWNS
) -> str:
    """Write a report as HTML.

    Args:
        report: what `Analysis.to_dict()` gives.
        drawn: its figures.
        by: breakdowns to show.
    """
    return html(document(report, View(by, whole=True)), drawn)


def html(laid_out: Document, drawn: Sequence[Drawn] = ()) -> str:
    """Write a document as HTML, with the figures that it has a place for."""
    style = files("m2po_lab.report").joinpath("templates/page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _template().render(
        document=laid_out,
        figures={d.figure.name: d for d in drawn},
        style=style,
        style_hash=f"sha256-{digest}",
    )


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("m2po_lab.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(blocks=_blocks, lines=_lines, side=_side, own=Markup)
    return environment.get_template("page.html")


def _blocks(content: Sequence[Item], figures: Container[str]) -> Iterator[tuple[str, list[Item]]]:
    """Items that stand together, with the kind of the first: a table and its figures, or alike."""
    shown = [i for i in content if not isinstance(i, Plot) or i.name in figures]
    while shown:
        like = type(shown[0])
        follow = Plot if like is Grid else like
        n = 1
        while n < len(shown) and isinstance(shown[n], follow) and follow in TOGETHER:
            n += 1
        yield KINDS[like], shown[:n]
        shown = shown[n:]


def _lines(columns: Sequence[Column]) -> Iterator[list[tuple[Column, str]]]:
    """Cells line by line, each with its column."""
    for cells in zip(*(c.cells for c in columns), strict=True):
        yield list(zip(columns, cells, strict=True))


def _side(column: Column) -> str:
    found = (("left", column.left), ("dim", column.style), ("fold", column.long))
    return " ".join(name for name, on in found if on)
