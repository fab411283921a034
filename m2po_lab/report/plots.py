"""From a report to drawn figures: SVG for the page, PNG and data files for a paper."""

import csv
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from m2po_lab.report.figures import FIGURES, Figure, Rows

INCHES_WIDE, PNG_DPI = 6.6, 160


@dataclass(frozen=True)
class Drawn:
    """One figure of one report.

    Attributes:
        figure: what it is.
        rows: its numbers.
        svg: inline SVG.
        png: PNG on white.
    """

    figure: Figure
    rows: Rows
    svg: str
    png: bytes

    @property
    def csv(self) -> str:
        """Its numbers as CSV; null is an empty field."""
        stream = io.StringIO()
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        writer = csv.DictWriter(stream, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return stream.getvalue()

    @property
    def json(self) -> str:
        """Its numbers as JSON."""
        return json.dumps(self.rows, allow_nan=False, indent=1) + "\n"


def draw(report: dict[str, Any]) -> list[Drawn]:
    """Draw every figure that the report has the numbers for."""
    drawn = []
    with _style():
        for figure in FIGURES:
            rows = figure.rows(report)
            if rows:
                drawn.append(_one(figure, rows))
    return drawn


@contextmanager
def _style() -> Iterator[None]:
    """Draw without a display, in the colours of the page."""
    import matplotlib

    from m2po_lab.report.palette import SETTINGS

    with matplotlib.rc_context(SETTINGS):
        yield


def _one(figure: Figure, rows: Rows) -> Drawn:
    from matplotlib.figure import Figure as Canvas

    from m2po_lab.report.svg import inline_svg

    canvas = Canvas(figsize=(INCHES_WIDE, figure.height), layout="constrained")
    axes = canvas.subplots(figure.panels, 1, sharex=True, squeeze=False)
    figure.draw(rows, list(axes[:, 0]))
    svg = inline_svg(canvas, figure.name, figure.title)
    stream = io.BytesIO()
    canvas.savefig(stream, format="png", dpi=PNG_DPI, facecolor="white", metadata={"Software": ""})
    return Drawn(figure, rows, svg, stream.getvalue())
