"""Pictures of the notebooks: one look, a sentence for those who cannot see them."""

import io
from base64 import b64encode
from typing import Any

import matplotlib as mpl
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from m2po_lab.report.palette import BLUE, GREEN, MUTED, ORANGE, RED, SETTINGS, VIOLET

DOTS_PER_INCH = 144
"""Of the PNG; it is shown at half that size, so that it is sharp on dense screens."""
COLORS = (BLUE, ORANGE, GREEN, RED, VIOLET, MUTED)


def theme() -> None:
    """Set the look of every picture that follows: the report's colours on white."""
    sns.set_theme(style="ticks", palette=list(COLORS))
    white: dict[Any, Any] = dict.fromkeys(("figure.facecolor", "axes.facecolor"), "white")
    titles: dict[Any, Any] = {"axes.titlesize": 11, "axes.titlelocation": "left"}
    mpl.rcParams.update({**SETTINGS, **white, **titles})


def panels(
    columns: int = 1, rows: int = 1, *, height: float = 3.0, wide: bool = False
) -> tuple[Figure, list[Axes]]:
    """Make axes side by side, and one row below the other.

    Args:
        columns: axes in a row.
        rows: rows.
        height: of a row, inches.
        wide: as wide as a page, as several columns always are.

    Returns:
        The figure, and its axes row by row.
    """
    width = 10.4 if wide or columns > 1 else 7.2
    figure = Figure(figsize=(width, height * rows), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).ravel())


class Picture:
    """A finished figure, shown by a notebook as PNG.

    Args:
        figure: what to show; it is rendered at once and not kept.
        says: a sentence that says what is to be seen; screen readers and plain text get it.
    """

    def __init__(self, figure: Figure, says: str) -> None:
        """Render the figure."""
        self.png, self.says = _png(figure), says
        self.width = int(figure.get_figwidth() * DOTS_PER_INCH / 2)

    def __repr__(self) -> str:
        """What is to be seen."""
        return f"[picture: {self.says}]"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        data = {"image/png": b64encode(self.png).decode("ascii"), "text/plain": repr(self)}
        return data, {"image/png": {"width": self.width, "alt": self.says}}


def _png(figure: Figure) -> bytes:
    """Render a figure; a palette of 128 colours is a third of the bytes and looks the same."""
    full, small = io.BytesIO(), io.BytesIO()
    figure.savefig(full, format="png", dpi=DOTS_PER_INCH)
    with Image.open(full) as image:
        image.convert("RGB").quantize(128).save(small, format="png", optimize=True)
    return small.getvalue()
