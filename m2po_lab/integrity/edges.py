"""First and last kept position of every row: does the mask start and end where the log-probs do?"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from m2po_lab.core.batch import RATIOS
from m2po_lab.integrity.additive import Additive, Bools, Floats, Ints
from m2po_lab.integrity.faults import Charge, positive, sentinel
from m2po_lab.integrity.flat import Flat
from m2po_lab.integrity.zeros import DOUBT

FEWEST_TOKENS = 3
"""Rows with fewer kept tokens are all edge."""
FEWEST_ROWS = 8
"""Rows from which a batch is judged."""
EDGE_SHARE, INSIDE_SHARE = 0.9, 0.02
"""Share of the rows with an impossible edge, and of the tokens between, at most."""
PLACES = ("first", "last")
EDGE = "edge"
"""Kind of the fault."""
DISAGREES = 0.5
"""Nats between two columns that no rounding gives."""


@dataclass(frozen=True)
class Edges(Additive):
    """Counts of tokens that cannot be right, at the edges of rows and between them.

    Args:
        rows: rows with enough tokens to have an inside.
        inside: kept tokens that are neither first nor last in those rows.
        impossible: column -> (3,) first, last, inside: exact 0.0 that another column contradicts,
            or not a log-prob at all.
        blank: (3,) tokens on which every column is exactly 0.0.
        disagree: ratio -> (3,) tokens whose two columns differ by more than `DISAGREES`.
    """

    rows: int
    inside: int
    impossible: dict[str, Ints]
    blank: Ints
    disagree: dict[str, Ints]


def measure(flat: Flat) -> Edges:
    """Count over the tokens as logged: what later checks exclude is evidence here."""
    index = np.flatnonzero(flat.keep)
    counts = flat.per_row(flat.keep)
    index = index[counts[flat.row[index]] >= FEWEST_TOKENS]
    row = flat.row[index]
    first, last = np.ones(row.shape, np.bool_), np.ones(row.shape, np.bool_)
    first[1:] = row[1:] != row[:-1]
    last[:-1] = first[1:]
    place = np.where(first, 0, np.where(last, 1, 2))

    def count(hit: Bools) -> Ints:
        return np.bincount(place[hit], minlength=3)

    columns = {name: values[index] for name, values in flat.logp.items()}
    zero = {name: values == 0.0 for name, values in columns.items()}
    blank = np.all(list(zero.values()), axis=0) if zero else np.zeros(row.shape, np.bool_)
    with np.errstate(invalid="ignore"):
        disagree = {
            ratio: np.abs(columns[RATIOS[ratio][0]] - columns[RATIOS[ratio][1]]) > DISAGREES
            for ratio in flat.ratios()
        }
    return Edges(
        rows=int(first.sum()),
        inside=int((place == 2).sum()),
        impossible={name: count(_impossible(name, columns)) for name in columns},
        blank=count(blank),
        disagree={ratio: count(hit) for ratio, hit in disagree.items()},
    )


def judge(seen: Edges | None, shifted: Collection[str]) -> set[Charge]:
    """What the counts convict: nearly every row is impossible there, hardly a token between.

    Args:
        seen: of a batch or of a log.
        shifted: columns that are off by a token themselves; that is none of the mask's.
    """
    if seen is None or seen.rows < FEWEST_ROWS:
        return set()
    named: list[tuple[tuple[str, ...], Ints]] = [((n,), c) for n, c in seen.impossible.items()]
    if len(seen.impossible) > 1:
        named.append((tuple(seen.impossible), seen.blank))
    named += [(RATIOS[ratio], counts) for ratio, counts in seen.disagree.items()]
    found: dict[int, str] = {}
    for place in (0, 1):
        for names, counts in named:
            at_edge = counts[place] >= EDGE_SHARE * seen.rows
            few_inside = counts[2] <= INSIDE_SHARE * seen.inside
            if at_edge and few_inside and not any(name in shifted for name in names):
                found.setdefault(place, names[-1])
    return {(EDGE, column, PLACES[place]) for place, column in found.items()}


def hits(flat: Flat, charges: Collection[Charge]) -> dict[tuple[str, str], Bools]:
    """(column, "first" | "last") -> that kept token of every row, of the places in `charges`."""
    places = {place: column for kind, column, place in sorted(charges) if kind == EDGE}
    return {(name, place): _edge(flat, PLACES.index(place)) for place, name in places.items()}


def _edge(flat: Flat, at: int) -> Bools:
    """(N,) the first (0) or last (1) kept token of every row."""
    index = np.flatnonzero(flat.keep)
    row = flat.row[index]
    change = np.append(True, row[1:] != row[:-1])
    hit = np.zeros(flat.keep.shape, np.bool_)
    hit[index[change if at == 0 else np.append(change[1:], True)]] = True
    return hit


def _impossible(name: str, columns: dict[str, Floats]) -> Bools:
    values = columns[name]
    others = [other for n, other in columns.items() if n != name]
    doubted = np.zeros(values.shape, np.bool_)
    for other in others:
        doubted |= other < DOUBT
    not_a_logp = ~np.isfinite(values) | positive(name, values) | sentinel(name, values)
    return np.asarray(not_a_logp | ((values == 0.0) & doubted))
