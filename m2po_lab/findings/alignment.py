"""Rules about columns that do not belong to the same tokens."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from m2po_lab.findings.finding import Hit
from m2po_lab.findings.names import NAMES, WHOSE
from m2po_lab.findings.view import View
from m2po_lab.integrity.additive import Ints
from m2po_lab.integrity.edges import EDGE, PLACES, Edges
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
    edges = view.evidence.marks.edges
    if edges is None:
        return
    columns: dict[str, tuple[str | None, Ints]] = {
        WHOSE[NAMES[name]]: (NAMES[name], counts) for name, counts in edges.impossible.items()
    }
    if len(columns) > 1:
        columns[WHOSE["every"]] = ("every", edges.blank)
    explained = {n for ratio in view.shifted for n in ratio.split("/")}
    for at, place in enumerate(PLACES):
        for whose, (name, counts) in columns.items():
            if name not in explained and _at_edge(view, edges, counts, at):
                yield _edge_hit(
                    view,
                    f"{counts[at]} of {edges.rows} rows have {whose} that is an exact 0.0 or "
                    f"impossible at their {place} kept token; {counts[2]} of {edges.inside} tokens "
                    "between do.",
                    {"ratio": None, "column": name, "rows": int(counts[at])},
                    place,
                    counts,
                )
                break
        else:
            yield from _edge_disagreement(view, edges, at, place)


def _edge_disagreement(view: View, edges: Edges, at: int, place: str) -> Iterator[Hit]:
    for ratio, counts in edges.disagree.items():
        if ratio not in view.shifted and _at_edge(view, edges, counts, at):
            yield _edge_hit(
                view,
                f"{ratio}: the columns differ by more than .5 nats at the {place} kept token of "
                f"{counts[at]} rows, but rarely between.",
                {"ratio": ratio, "column": None, "rows": int(counts[at])},
                place,
                counts,
            )
            return
    yield from _in_some_files(view, edges, at, place)


def _in_some_files(view: View, edges: Edges, at: int, place: str) -> Iterator[Hit]:
    """Batches that were convicted by themselves, in a log whose other rows are well."""
    for (kind, column, where), fault in view.evidence.faults.items():
        if (kind, where) == (EDGE, place):
            name = NAMES[column]
            counts = edges.impossible.get(column, np.zeros(3, np.int64))
            yield _edge_hit(
                view,
                f"In some files nearly every row, {fault.rows} in all, has {WHOSE[name]} that "
                f"cannot be right at its {place} kept token.",
                {"ratio": None, "column": name, "rows": fault.rows},
                place,
                counts,
            )
            return


def _edge_hit(view: View, said: str, numbers: dict[str, Any], place: str, counts: Ints) -> Hit:
    edges, excluded = view.evidence.marks.edges, view.evidence.tokens.edge
    assert edges is not None
    return Hit(
        f"{said} {excluded} tokens there are left out of all numbers, as masked.",
        {
            **numbers,
            "position": place,
            "rows_asked": edges.rows,
            "inside": int(counts[2]),
            "inside_asked": edges.inside,
            "tokens_excluded": excluded,
        },
    )


def _at_edge(view: View, edges: Edges, counts: Ints, at: int) -> bool:
    limits = view.limits
    enough = edges.rows >= limits["min_rows"]
    few_inside = counts[2] <= limits["edge_inside_share"] * edges.inside
    return bool(enough and counts[at] >= limits["edge_share"] * edges.rows and few_inside)


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
