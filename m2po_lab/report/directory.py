"""A directory with the whole report: JSON for programs, text and a page for people, figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from m2po_lab.report.document import dumps, write_bytes, write_text
from m2po_lab.report.outline import DEFAULT_BY
from m2po_lab.report.page import page
from m2po_lab.report.plots import draw
from m2po_lab.report.terminal import render

PAGE = "report.html"


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
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = draw(report)
    for item in drawn:
        write_bytes(folder / f"{item.figure.name}.png", item.png)
        write_text(folder / f"{item.figure.name}.csv", item.csv)
        write_text(folder / f"{item.figure.name}.json", item.json)
    write_text(out / "report.json", dumps(report))
    write_text(out / "report.txt", render(report, by=by))
    write_text(out / PAGE, page(report, drawn))
    return out / PAGE
