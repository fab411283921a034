"""The figures of the page: what each shows, which numbers it needs, and how it is drawn.

A figure is three things: rows (plain numbers out of the report, written as CSV and JSON beside it),
a drawing function that takes rows and axes and computes nothing, and a caption.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from m2po_lab.report import drawing, drawing_whatif, whatif_data
from m2po_lab.report import figure_data as data
from m2po_lab.report.figure_data import Marks, Report, Rows

WIDTH, LINE = 5.4, 0.2
"""Inches: narrow enough to be read on a phone, where all of it is as wide as the screen."""


@dataclass(frozen=True)
class Figure:
    """One kind of figure.

    Attributes:
        name: file name without suffix, and the id on the page.
        title: head line.
        caption: what to see in it, in a sentence or two.
        rows: report -> the numbers it shows; empty if the report lacks them.
        draw: draws the rows and marks into `panels` axes, one above the other.
        panels: how many axes it needs.
        height: inches, those of the lines of `lines` aside.
        lines: column of the rows of which each different value takes a line more, `LINE` high.
        marks: report -> named positions to mark.
    """

    name: str
    title: str
    caption: str
    rows: Callable[[Report], Rows]
    draw: Callable[[Rows, Marks, Sequence[Any]], None]
    panels: int = 1
    height: float = 2.9
    lines: str = ""
    marks: Callable[[Report], Marks] = data.unmarked

    def size(self, rows: Rows) -> tuple[float, float]:
        """Width and height for these rows, in inches."""
        lines = len({row[self.lines] for row in rows}) if self.lines else 0
        return WIDTH, self.height + LINE * lines


FIGURES: tuple[Figure, ...] = (
    Figure(
        "log_ratio",
        "Distribution of d, with the bounds of each trust region",
        "Tokens by log-ratio, both axes logarithmic (linear in the middle of the x axis). A clip "
        "drops what is outside its bounds, on the side where it acts on that sign of A; M2PO what "
        "is beyond the threshold of its scope among active tokens; the lowest of these is marked.",
        data.log_ratio,
        drawing.log_ratio,
        marks=data.bounds,
    ),
    Figure(
        "probabilities",
        "Probability under both policies",
        "Sampled tokens; on the diagonal the two agree. Below it the trainer has given a token up: "
        "ESS hardly sees these.",
        data.probabilities,
        drawing.probabilities,
        height=4.0,
    ),
    Figure(
        "by_lag",
        "M2 by lag",
        "How far tokens have drifted as the policy that sampled them grows older; bars are 95 % "
        "intervals (bootstrap over rows). Lag 0 is the floor of engines and precision.",
        data.breakdown("lag"),
        drawing.by_lag,
    ),
    Figure(
        "by_step",
        "M2, k3 and ESS by step",
        "ESS cannot see r -> 0: where M2 rises and ESS stays near 1, tokens are being unlearned.",
        data.several(data.steps),
        drawing.by_step,
        panels=3,
        height=5.4,
    ),
    Figure(
        "facts",
        "Reward and entropy by step",
        "Means over the rows and the tokens of a step.",
        data.several(data.facts),
        drawing.facts,
        height=2.4,
    ),
    Figure(
        "by_quadrant",
        "Where the drift sits",
        "Share of tokens against share of the sum of d². An upper clip acts in (A>0, r>1), a "
        "lower one in (A<0, r<1); the rest is on its way back or has no gradient.",
        data.quadrants,
        drawing.by_quadrant,
    ),
    Figure(
        "by_probability",
        "|d| by probability of the token",
        "Rare tokens differ more between engines; a flat or rising right side is no rounding.",
        data.breakdown("probability"),
        drawing.by_probability,
    ),
    Figure(
        "by_position",
        "|d| by position in the response",
        "Drift that grows with position is fed by the tokens before.",
        data.several(data.breakdown("position")),
        drawing.by_position,
    ),
    Figure(
        "metrics",
        "Metrics of the trainer",
        "As logged; the first few of the table.",
        data.several(data.metrics),
        drawing.metrics,
        panels=data.MOST_PANELS,
        height=6.5,
    ),
    Figure(
        "objectives",
        "What each trust region would do",
        "Share of the counted tokens that lose their gradient; beside a bar, with advantages, the "
        "share of the unclipped gradient mass that is kept.",
        whatif_data.objectives,
        drawing_whatif.objectives,
        height=0.9,
        lines="objective",
    ),
    Figure(
        "clip_sweep",
        "Tokens that a clip would drop",
        "Share of counted tokens without a gradient, for every clip range at once.",
        data.several(data.sweep("clip")),
        drawing.clip_sweep,
    ),
    Figure(
        "budget_sweep",
        "Tokens that M2PO would mask",
        "Share of counted tokens masked, for every budget at once.",
        data.several(data.sweep("budget")),
        drawing.budget_sweep,
    ),
    Figure(
        "overlap",
        "Which objectives drop the same tokens",
        "Tokens that both drop over tokens that either drops. Objectives with the same set stand "
        "on one line, +n for how many others.",
        whatif_data.overlaps,
        drawing_whatif.overlap,
        height=1.2,
        lines="first",
    ),
    Figure(
        "lost_by_probability",
        "Which tokens lose their gradient, by probability",
        "Share of the tokens of each bin of the behavior policy's probability that a set holds. "
        "Rare tokens are those that exploration rests on.",
        whatif_data.lost_by("probability"),
        drawing_whatif.lost,
        height=1.0,
        lines="objective",
    ),
    Figure(
        "lost_by_entropy",
        "Which tokens lose their gradient, by entropy",
        "Share of the tokens of each bin of entropy (nats) that a set holds. High entropy marks "
        "the tokens at which a response branches.",
        whatif_data.lost_by("entropy"),
        drawing_whatif.lost,
        height=1.0,
        lines="objective",
    ),
    Figure(
        "worst",
        "The tokens with the largest |d|, in context",
        "Framed: the token itself. Red is masked by M2PO in its scope, orange active and kept, "
        "grey neither.",
        whatif_data.worst,
        drawing_whatif.worst,
        height=0.8,
        lines="rank",
    ),
)


COMPARISONS: tuple[Figure, ...] = (
    Figure(
        "compare_by_lag",
        "M2 by lag",
        "Bars are 95 % intervals of each run by itself (bootstrap over rows).",
        data.runs_by("lag"),
        drawing.runs_by_lag,
    ),
    Figure(
        "compare_by_step",
        "M2 by step",
        "All counted tokens of each step.",
        data.several(data.runs_by("step")),
        drawing.runs_by_step,
    ),
)
"""Figures of a comparison."""
