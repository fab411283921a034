"""An analysis in a notebook: tables as HTML, and its figures by name."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from m2po_lab.report import tables
from m2po_lab.report.figures import FIGURES
from m2po_lab.report.grid import Column
from m2po_lab.report.items import View
from m2po_lab.report.outline import document

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_FIGURES = {figure.name: figure for figure in FIGURES}


def as_html(report: dict[str, Any]) -> str:
    """Show the primary ratio and the findings; nothing from a log gets in unescaped."""
    laid_out = document(report, View())
    parts = [Markup("<p><b>{}</b></p>").format(laid_out.title)]
    if report["primary"] is None:
        parts.append(Markup("<p>No ratio: it needs two log-prob columns.</p>"))
    else:
        parts.append(Markup("<p>{}, per token over the loss mask</p>").format(report["primary"]))
        parts.append(_table(tables.ratio_table(report["ratios"][report["primary"]])))
    rows = [(f["severity"], f["id"], f["title"]) for f in report["findings"]]
    heads = ("severity", "finding", "")
    if rows:
        columns = [
            Column(head, [row[i] for row in rows], left=True) for i, head in enumerate(heads)
        ]
        parts.append(_table(columns))
    return str(Markup("\n").join(parts))


def _table(columns: list[Column]) -> Markup:
    head = Markup("").join(Markup("<th>{}</th>").format(c.head) for c in columns)
    body = Markup("\n").join(
        Markup("<tr>{}</tr>").format(Markup("").join(_cells(columns, line)))
        for line in zip(*(c.cells for c in columns), strict=True)
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)


def _cells(columns: list[Column], line: tuple[str, ...]) -> Iterator[Markup]:
    for column, value in zip(columns, line, strict=True):
        side = "left" if column.left else "right"
        yield Markup('<td style="text-align:{}">{}</td>').format(side, escape(value))


class Plots:
    """The figures of the report by name, each as a matplotlib figure: `analysis.plot.by_lag()`.

    Args:
        report: what `Analysis.to_dict()` gives.
    """

    def __init__(self, report: dict[str, Any]) -> None:
        """Keep the numbers."""
        self._report = report

    @property
    def names(self) -> tuple[str, ...]:
        """Figures that this report has the numbers for."""
        return tuple(name for name, figure in _FIGURES.items() if figure.rows(self._report))

    def __call__(self, name: str, axes: Any = None) -> "Drawing":
        """Draw one figure.

        Args:
            name: one of `names`.
            axes: where to draw; a sequence for a figure of several panels. None makes new ones.

        Returns:
            The figure that was drawn into. A new one is not pyplot's: a notebook shows it once,
            as the value of its cell; a script saves it by `savefig`.

        Raises:
            ValueError: no such figure, or the report lacks its numbers, or the axes are too few.
        """
        figure = _FIGURES.get(name)
        rows = figure.rows(self._report) if figure is not None else []
        if figure is None or not rows:
            raise ValueError(f"no figure {name!r} here; one of {', '.join(self.names) or 'none'}")
        if axes is None:
            panels = _panels(figure.panels, figure.size(rows))
        else:
            panels = list(axes) if figure.panels > 1 else [axes]
        if len(panels) != figure.panels:
            raise ValueError(f"{name} needs {figure.panels} axes, got {len(panels)}")
        figure.draw(rows, figure.marks(self._report), panels)
        drawing: Drawing = panels[0].get_figure(root=True)
        return drawing

    def log_ratio(self, axes: Any = None) -> "Drawing":
        """Histogram of d with the bounds of clip and M2PO."""
        return self("log_ratio", axes)

    def probabilities(self, axes: Any = None) -> "Drawing":
        """Probability under one policy against the other."""
        return self("probabilities", axes)

    def by_lag(self, axes: Any = None) -> "Drawing":
        """M2 by lag with its interval."""
        return self("by_lag", axes)

    def by_step(self, axes: Any = None) -> "Drawing":
        """M2, k3, ESS, k1, reward and entropy by step, on three axes."""
        return self("by_step", axes)

    def facts(self, axes: Any = None) -> "Drawing":
        """Mean reward and entropy by step."""
        return self("facts", axes)

    def by_quadrant(self, axes: Any = None) -> "Drawing":
        """Share of tokens and of the sum of d² in each quadrant."""
        return self("by_quadrant", axes)

    def by_position(self, axes: Any = None) -> "Drawing":
        """|d| by position in the response."""
        return self("by_position", axes)

    def by_probability(self, axes: Any = None) -> "Drawing":
        """|d| by probability under the behavior policy."""
        return self("by_probability", axes)

    def metrics(self, axes: Any = None) -> "Drawing":
        """What the trainer logged, on five axes."""
        return self("metrics", axes)

    def objectives(self, axes: Any = None) -> "Drawing":
        """Tokens that each objective leaves without a gradient, and the mass it keeps."""
        return self("objectives", axes)

    def clip_sweep(self, axes: Any = None) -> "Drawing":
        """Share of tokens that a clip would drop, by eps."""
        return self("clip_sweep", axes)

    def budget_sweep(self, axes: Any = None) -> "Drawing":
        """Share of tokens that M2PO would mask, by budget."""
        return self("budget_sweep", axes)

    def overlap(self, axes: Any = None) -> "Drawing":
        """How far the dropped sets of the objectives agree."""
        return self("overlap", axes)

    def lost_by_probability(self, axes: Any = None) -> "Drawing":
        """Share of the tokens of each bin of probability that lose their gradient."""
        return self("lost_by_probability", axes)

    def lost_by_entropy(self, axes: Any = None) -> "Drawing":
        """Share of the tokens of each bin of entropy that lose their gradient."""
        return self("lost_by_entropy", axes)

    def worst(self, axes: Any = None) -> "Drawing":
        """The tokens with the largest |d| among their neighbours."""
        return self("worst", axes)


def _panels(n: int, size: tuple[float, float]) -> list[Any]:
    """New axes, one above the other, of a figure that pyplot forgets."""
    from matplotlib import pyplot

    drawing, grid = pyplot.subplots(
        n, 1, figsize=size, sharex=True, squeeze=False, layout="constrained"
    )
    pyplot.close(drawing)
    return list(grid[:, 0])
