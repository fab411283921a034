"""From a report to drawn figures: SVG for the page, PNG and data files for a paper."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from m2po_lab.report.figure_data import Marks, Rows
from m2po_lab.report.figures import Figure
from m2po_lab.report.format import plain

PNG_DPI = 200
FORMULA = ("=", "+", "-", "@")
"""What a spreadsheet takes for the start of a formula."""


@dataclass(frozen=True)
class Drawn:
    """One figure of one report.

    Attributes:
        figure: what it is.
        rows: its numbers.
        marks: named positions marked in it.
        svg: inline SVG.
        png: PNG on white.
    """

    figure: Figure
    rows: Rows
    marks: Marks
    svg: str
    png: bytes

    @property
    def csv(self) -> str:
        """Its numbers as CSV; null is an empty field, what looks like a formula is quoted."""
        stream = io.StringIO()
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        writer = csv.DictWriter(stream, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _harmless(v) for name, v in row.items()} for row in self.rows)
        return stream.getvalue()

    @property
    def json(self) -> str:
        """Its numbers and marks as JSON."""
        data = {"rows": self.rows, "marks": self.marks}
        return json.dumps(data, allow_nan=False, indent=1) + "\n"


def _harmless(value: Any) -> Any:
    """A text without control characters that no spreadsheet runs; numbers as they are."""
    if not isinstance(value, str):
        return value
    text = plain(value)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def draw(report: dict[str, Any], figures: Sequence[Figure]) -> list[Drawn]:
    """Draw every one of the figures that the report has the numbers for."""
    drawn = []
    with _style():
        for figure in figures:
            rows = figure.rows(report)
            if rows:
                drawn.append(_one(figure, rows, figure.marks(report)))
    return drawn


@contextmanager
def _style() -> Iterator[None]:
    """Draw without a display, in the colours of the page."""
    import matplotlib

    from m2po_lab.report.palette import SETTINGS

    with matplotlib.rc_context(SETTINGS):
        yield


def _one(figure: Figure, rows: Rows, marks: Marks) -> Drawn:
    from matplotlib.figure import Figure as Canvas

    from m2po_lab.report.svg import inline_svg

    canvas = Canvas(figsize=figure.size(rows), layout="constrained")
    axes = canvas.subplots(figure.panels, 1, sharex=True, squeeze=False)
    figure.draw(rows, marks, list(axes[:, 0]))
    svg = inline_svg(canvas, figure.name, figure.title)
    canvas.set_layout_engine("none")  # the layout stays as it is; to find it again takes as long
    stream = io.BytesIO()
    canvas.savefig(stream, format="png", dpi=PNG_DPI, facecolor="white", metadata={"Software": ""})
    return Drawn(figure, rows, marks, svg, stream.getvalue())
