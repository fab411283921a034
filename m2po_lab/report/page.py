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

from m2po_lab.report.findings import counted
from m2po_lab.report.format import number, percent, plain
from m2po_lab.report.grid import Column
from m2po_lab.report.items import Context, Grid, Item, Judgement, Words
from m2po_lab.report.outline import SECTIONS
from m2po_lab.report.plots import Drawn
from m2po_lab.report.terminal import BREAKDOWNS

KINDS = {Words: "words", Grid: "table", Judgement: "finding", Context: "context"}
HEADLINE = (
    ("M2", "m2", "mean of d², all tokens", number),
    ("ESS/n", "ess_fraction", "blind to r -> 0", number),
    ("k1", "k1", "KL estimate, -mean of d", number),
    ("min d", "log_ratio_min", "lower tail", number),
    ("max d", "log_ratio_max", "upper tail", number),
    ("top 1 %", "top1pct_m2_share", "share of M2 in the 1 % largest |d|", percent),
)


def page(
    report: dict[str, Any], drawn: Sequence[Drawn] = (), by: Sequence[str] = BREAKDOWNS
) -> str:
    """Write a report as HTML.

    Args:
        report: what `Analysis.to_dict()` gives.
        drawn: its figures.
        by: breakdowns to show.
    """
    style = files("m2po_lab.report").joinpath("templates/page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _template().render(
        title=_title(report),
        version=report["version"],
        partial=report["partial"],
        counts=counted(report["findings"]),
        headline=_headline(report),
        parts=[
            {"id": s.id, "title": s.title, "content": list(s.items(report, by))} for s in SECTIONS
        ],
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


def _title(report: dict[str, Any]) -> str:
    paths = [plain(source["path"], limit=80) for source in report["inputs"]]
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}" if paths else "Nothing was read"


def _headline(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The numbers that must stand together, of the primary ratio over all tokens."""
    if report["primary"] is None:
        return []
    stats = report["ratios"][report["primary"]]["all"]
    return [(head, write(stats[field]), words) for head, field, words, write in HEADLINE]
