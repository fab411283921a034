"""The figures of the page: what each shows, which numbers it needs, and how it is drawn.

A figure is three things: rows (plain numbers out of the report, written as CSV and JSON beside it),
a drawing function that takes rows and axes and computes nothing, and a caption.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from m2po_lab.report import drawing

Rows = list[dict[str, Any]]
Report = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """One kind of figure.

    Attributes:
        name: file name without suffix, and the id on the page.
        title: head line.
        caption: what to see in it, in a sentence or two.
        rows: report -> the numbers it shows; empty if the report lacks them.
        draw: draws the rows into `panels` axes, one above the other.
        panels: how many axes it needs.
        height: inches.
    """

    name: str
    title: str
    caption: str
    rows: Callable[[Report], Rows]
    draw: Callable[[Rows, Sequence[Any]], None]
    panels: int = 1
    height: float = 3.2


def breakdown(kind: str) -> Callable[[Report], Rows]:
    """Rows of one breakdown of the primary ratio."""

    def rows(report: Report) -> Rows:
        if report["primary"] is None:
            return []
        found: Rows | None = report["ratios"][report["primary"]][f"by_{kind}"]
        return found or []

    return rows


def steps(report: Report) -> Rows:
    """Statistics by step, joined with reward and entropy by step where the report has them."""
    rows = [dict(row) for row in breakdown("step")(report)]
    for name in ("reward", "entropy"):
        facts = report[name]
        by_step = facts.get("by_step") if isinstance(facts, dict) else None
        means = {item["step"]: item.get("mean") for item in by_step or []}
        for row in rows:
            if means:
                row[name] = means.get(row["step"])
    return rows


def quadrants(report: Report) -> Rows:
    """Share of tokens and share of the sum of d² in each quadrant."""
    if report["primary"] is None:
        return []
    found = report["ratios"][report["primary"]]["by_quadrant"] or {}
    n = sum(s["n"] for s in found.values())
    mass = sum(s["n"] * (s["m2"] or 0.0) for s in found.values())
    if not n or not mass:
        return []
    return [
        {
            "quadrant": name,
            "tokens": s["n"] / n,
            "mass": s["n"] * (s["m2"] or 0.0) / mass,
        }
        for name, s in found.items()
    ]


def sweep(kind: str) -> Callable[[Report], Rows]:
    """Points of a sweep."""
    return lambda report: list((report["sweeps"] or {}).get(kind) or [])


def several(rows: Callable[[Report], Rows]) -> Callable[[Report], Rows]:
    """The same rows, or none if there is only one: a curve needs two points."""
    return lambda report: found if len(found := rows(report)) > 1 else []


FIGURES: tuple[Figure, ...] = (
    Figure(
        "by_lag",
        "M2 by lag",
        "How far tokens have drifted as the policy that sampled them grows older; bars are 95 % "
        "intervals (bootstrap over rows). Lag 0 is the floor of engines and precision.",
        breakdown("lag"),
        drawing.by_lag,
    ),
    Figure(
        "by_step",
        "M2, k3 and ESS by step",
        "ESS cannot see r -> 0: where M2 rises and ESS stays near 1, tokens are being unlearned.",
        several(steps),
        drawing.by_step,
        panels=3,
        height=6.2,
    ),
    Figure(
        "by_quadrant",
        "Where the drift sits",
        "Share of tokens against share of the sum of d². An upper clip acts in (A>0, r>1), a "
        "lower one in (A<0, r<1); the rest is on its way back or has no gradient.",
        quadrants,
        drawing.by_quadrant,
    ),
    Figure(
        "by_probability",
        "|d| by probability of the token",
        "Rare tokens differ more between engines; a flat or rising right side is no rounding.",
        breakdown("probability"),
        drawing.by_probability,
    ),
    Figure(
        "by_position",
        "|d| by position in the response",
        "Drift that grows with position is fed by the tokens before.",
        several(breakdown("position")),
        drawing.by_position,
    ),
    Figure(
        "clip_sweep",
        "Tokens that a clip would drop",
        "Share of counted tokens without a gradient, for every clip range at once.",
        several(sweep("clip")),
        drawing.clip_sweep,
    ),
    Figure(
        "budget_sweep",
        "Tokens that M2PO would mask",
        "Share of counted tokens masked, for every budget at once.",
        several(sweep("budget")),
        drawing.budget_sweep,
    ),
)
