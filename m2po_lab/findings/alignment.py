"""Rules about columns that do not belong to the same tokens."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from m2po_lab.findings.finding import Hit
from m2po_lab.findings.names import NAMES
from m2po_lab.findings.view import View
from m2po_lab.integrity.shifts import SHIFTS


def shift_by_one(view: View) -> Iterator[Hit]:
    """Alignment of every pair of columns."""
    for ratio, reason in view.shifted.items():
        shift = view.evidence.shifts[ratio]
        correlations = dict(
            zip((f"{s:+d}" if s else "0" for s in SHIFTS), shift.correlations, strict=True)
        )
        shown = ", ".join(f"{r:.2f} at {s}" for s, r in correlations.items())
        votes = {"rows": int(shift.votes[[0, 2]].sum()), "rows_asked": int(shift.votes[3])}
        yield Hit(
            f"{ratio} needs {reason}. Correlations: {shown}; {votes['rows']} of "
            f"{votes['rows_asked']} rows that can tell are shifted.",
            {"ratio": ratio, "correlation": correlations, "pairs": int(shift.sums[1, 0]), **votes},
        )


def mask_shifted(view: View) -> Iterator[Hit]:
    """First and last kept tokens against those between."""
    edges = view.evidence.edges
    if edges is None or edges.rows < view.limits["min_rows"]:
        return
    columns = {NAMES[name]: counts for name, counts in edges.impossible.items()}
    if len(columns) > 1:
        columns["every"] = edges.blank
    explained = {n for ratio in view.shifted for n in ratio.split("/")}
    for at, place in enumerate(("first", "last")):
        for name, counts in columns.items():
            if name not in explained and _at_edge(view, counts, at):
                yield Hit(
                    f"{counts[at]} of {edges.rows} rows have a {name} log-prob that is an exact "
                    f"0.0 or impossible at their {place} kept token; {counts[2]} of "
                    f"{edges.inside} tokens between do. {_left_out(view)}",
                    {"ratio": None, "column": name, **_edge_numbers(view, counts, at, place)},
                )
                break
        else:
            yield from _edge_disagreement(view, at, place)


def _edge_disagreement(view: View, at: int, place: str) -> Iterator[Hit]:
    for ratio, counts in view.evidence.edges.disagree.items() if view.evidence.edges else ():
        if ratio not in view.shifted and _at_edge(view, counts, at):
            yield Hit(
                f"{ratio}: the columns differ by more than .5 nats at the {place} kept token of "
                f"{counts[at]} rows, but rarely between. {_left_out(view)}",
                {"ratio": ratio, "column": None, **_edge_numbers(view, counts, at, place)},
            )
            return


def _left_out(view: View) -> str:
    return f"{view.evidence.tokens.edge} tokens there are left out of all numbers, as masked."


def _at_edge(view: View, counts: np.ndarray[Any, Any], at: int) -> bool:
    edges, limits = view.evidence.edges, view.limits
    assert edges is not None
    few_inside = counts[2] <= limits["edge_inside_share"] * edges.inside
    return bool(counts[at] >= limits["edge_share"] * edges.rows and few_inside)


def _edge_numbers(view: View, counts: Any, at: int, place: str) -> dict[str, Any]:
    edges = view.evidence.edges
    assert edges is not None
    numbers = {"rows": int(counts[at]), "rows_asked": edges.rows, "inside": int(counts[2])}
    excluded = {"tokens_excluded": view.evidence.tokens.edge}
    return {"position": place, **numbers, "inside_asked": edges.inside, **excluded}


def length_mismatch(view: View) -> Iterator[Hit]:
    """Columns that do not fit their tokens, by side."""
    table = view.evidence.lengths
    if table:
        parts = [f"{NAMES.get(c, c)}: {n} rows {side}" for (c, side), n in sorted(table.items())]
        rows = view.evidence.rows.unaligned
        yield Hit(
            f"Columns do not fit the tokens of their rows ({'; '.join(parts)}). {rows} rows with "
            f"{view.evidence.tokens.unaligned} tokens are left out.",
            {
                "ratio": None,
                "rows": rows,
                "tokens": view.evidence.tokens.unaligned,
                "columns": {
                    f"{NAMES.get(c, c)} {side}": n for (c, side), n in sorted(table.items())
                },
            },
        )


def retokenised(view: View) -> Iterator[Hit]:
    """Id columns that disagree."""
    if view.evidence.retokenised:
        rows = view.evidence.retokenised
        yield Hit(
            f"In {rows} of {view.evidence.rows.read} rows two id columns hold other tokens.",
            {"ratio": None, "rows": rows, "rows_read": view.evidence.rows.read},
        )
