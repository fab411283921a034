"""The report as one HTML file: no script, no network, every word from a log escaped.

The content policy of the page allows nothing but its own style sheet, named by its hash. Figures
are inline SVG made from numbers; text from a log reaches the page through autoescaped fields only.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from m2po_lab.report.grid import Column
from m2po_lab.report.items import Context, Grid, Item, Judgement, Words
from m2po_lab.report.outline import BREAKDOWNS, Document, document
from m2po_lab.report.plots import Drawn

KINDS = {Words: "words", Grid: "table", Judgement: "finding", Context: "context"}


def page(
    report: dict[str, Any], drawn: Sequence[Drawn] = (), by: Sequence[str] = BREAKDOWNS
) -> str:
    """Write a report as HTML.

    Args:
        report: what `Analysis.to_dict()` gives.
        drawn: its figures.
        by: breakdowns to show.
    """
    return html(document(report, by), drawn)


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
    environment.filters.update(kind=_kind, lines=_lines, side=_side, own=Markup)
    return environment.get_template("page.html")


def _kind(item: Item) -> str:
    return KINDS.get(type(item), "figure")


def _lines(columns: Sequence[Column]) -> Iterator[list[tuple[Column, str]]]:
    """Cells line by line, each with its column."""
    for cells in zip(*(c.cells for c in columns), strict=True):
        yield list(zip(columns, cells, strict=True))


def _side(column: Column) -> str:
    return " ".join(n for n, on in (("left", column.left), ("dim", column.style)) if on)
