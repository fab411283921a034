"""Faults that single tokens do not show, only nearly all rows together: masks, padding, filling.

A batch is judged by itself, since a stream is read once. Where batches are small, only the whole
log can tell; then `overruled` says what its batches missed, and the log has to be read once more.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from m2po_lab.core.batch import RATIOS
from m2po_lab.integrity import blank, edges, shifts, zeros
from m2po_lab.integrity.additive import Additive
from m2po_lab.integrity.blank import Blanks
from m2po_lab.integrity.edges import EDGE, Edges
from m2po_lab.integrity.faults import Charge
from m2po_lab.integrity.flat import Flat
from m2po_lab.integrity.kept import Kept
from m2po_lab.integrity.shifts import Shift
from m2po_lab.integrity.zeros import Filled


@dataclass(frozen=True)
class Marks(Additive):
    """What nearly every row shows.

    Args:
        rows: rows that were judged.
        applied: charge -> rows of the batches in which it held.
        edges: first and last kept tokens.
        blanks: runs of zeros at the ends of rows.
        filled: behavior log-probs that were filled in.
    """

    rows: int = 0
    applied: dict[Charge, int] = field(default_factory=dict)
    edges: Edges | None = None
    blanks: Blanks | None = None
    filled: Filled = field(default_factory=Filled)

    def unjudged(self) -> dict[str, str]:
        """What the log has too few rows to judge -> what that needs."""
        found = {}
        if self.edges is not None and self.edges.rows < edges.FEWEST_ROWS:
            need = f"{edges.FEWEST_ROWS} rows of {edges.FEWEST_TOKENS} kept tokens"
            found["whether the mask is one token off"] = need
        if self.blanks is not None and self.blanks.end.rows < blank.FEWEST_ROWS:
            need = f"{blank.FEWEST_ROWS} rows with a kept token"
            found["whether zeros at the ends of rows are padding"] = need
        return found

    @classmethod
    def of(
        cls, charges: Collection[Charge], rows: int, *, blanks: Blanks | None, filled: Filled
    ) -> "Marks":
        """Marks of a batch but for its edges, under the charges that hold in it."""
        return cls(rows, dict.fromkeys(sorted(charges), rows), None, blanks, filled)


def edge_marks(marks: Marks, logged: Flat, clean: Flat, given: Collection[Charge]) -> Marks:
    """The marks of a batch with those of its edges.

    Args:
        marks: of zeros.
        logged: the batch as logged; what other checks exclude is evidence here.
        clean: without what other checks exclude.
        given: what the whole log convicts.
    """
    seen = edges.measure(logged)
    found = edges.judge(seen, ())
    if found:
        kept = Kept(clean)
        found = edges.judge(
            seen, _shifted({ratio: shifts.measure(kept, ratio) for ratio in clean.ratios()})
        )
    held = {charge for charge in given if charge[0] == EDGE}
    places = {place for _, _, place in held}
    held |= {charge for charge in found if charge[2] not in places}
    return replace(marks, edges=seen, applied=marks.applied | dict.fromkeys(held, marks.rows))


def overruled(marks: Marks, moved: dict[str, Shift]) -> frozenset[Charge]:
    """Charges that the whole log bears out and some of its batches were too small to see.

    Args:
        marks: of the log.
        moved: evidence of shifts; an edge of a shifted column is none of the mask's.
    """
    charges = edges.judge(marks.edges, _shifted(moved))
    charges |= blank.judge(marks.blanks) | zeros.judge(marks.filled)
    return frozenset(c for c in charges if marks.applied.get(c, 0) < marks.rows)


def _shifted(moved: dict[str, Shift]) -> set[str]:
    return {name for ratio in shifts.untrusted(moved) for name in RATIOS[ratio]}
