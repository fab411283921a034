"""A directory with the whole report: JSON for programs, text and a page for people, figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from m2po_lab.report.compared import document
from m2po_lab.report.document import dumps, write_bytes, write_text
from m2po_lab.report.figures import COMPARISONS, FIGURES
from m2po_lab.report.items import View
from m2po_lab.report.outline import DEFAULT_BY
from m2po_lab.report.page import html, page
from m2po_lab.report.plots import Drawn, draw
from m2po_lab.report.terminal import render, write

PAGE, COMPARE_PAGE = "report.html", "compare.html"


def write_report(report: dict[str, Any], out: Path, by: Sequence[str] = DEFAULT_BY) -> Path:
    """Write report.html, report.json, report.txt and the figures with their data.

    Each file is written whole or not at all, the page last; other files in the directory are left
    alone.

    Args:
        report: what `Analysis.to_dict()` gives.
        out: directory; it is made if it does not exist.
        by: breakdowns to show in the text.

    Returns:
        The page.

    Raises:
        OSError: the directory cannot be made or written.
    """
    drawn = _figures(draw(report, FIGURES), out)
    write_text(out / "report.json", dumps(report))
    write_text(out / "report.txt", render(report, by=by))
    write_text(out / PAGE, page(report, drawn))
    return out / PAGE


def write_comparison(comparison: dict[str, Any], out: Path) -> Path:
    """Write compare.html, compare.json, compare.txt and the figures; return the page."""
    drawn = _figures(draw(comparison, COMPARISONS), out)
    write_text(out / "compare.json", dumps(comparison))
    write_text(out / "compare.txt", write(document(comparison, View())))
    write_text(out / COMPARE_PAGE, html(document(comparison, View(whole=True)), drawn))
    return out / COMPARE_PAGE


def _figures(drawn: list[Drawn], out: Path) -> list[Drawn]:
    """Write each figure as PNG, its numbers as CSV and JSON."""
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for item in drawn:
        write_bytes(folder / f"{item.figure.name}.png", item.png)
        write_text(folder / f"{item.figure.name}.csv", item.csv)
        write_text(folder / f"{item.figure.name}.json", item.json)
    return drawn
