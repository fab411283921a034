"""First and last kept position of every row: does the mask start and end where the log-probs do?"""

from dataclasses import dataclass

import numpy as np

from m2po_lab.core.batch import RATIOS
from m2po_lab.integrity import shifts
from m2po_lab.integrity.additive import Additive, Bools, Floats, Ints
from m2po_lab.integrity.faults import positive, sentinel
from m2po_lab.integrity.flat import Flat
from m2po_lab.integrity.kept import Kept
from m2po_lab.integrity.shifts import untrusted
from m2po_lab.integrity.zeros import DOUBT

FEWEST_TOKENS = 3
"""Rows with fewer kept tokens are all edge."""
FEWEST_ROWS = 8
"""Rows from which a batch is judged."""
EDGE_SHARE, INSIDE_SHARE = 0.9, 0.02
"""Share of the rows with an impossible edge, and of the tokens between, at most."""
PLACES = ("first", "last")
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


def off_by_one(logged: Flat, clean: Flat) -> dict[tuple[str, str], Bools]:
    """(column, "first" | "last") -> that token of every row, where the mask is off by one.

    Judged batch by batch, by the rule of the finding: nearly every row has a value there that is
    impossible, and hardly a token between has. Columns that are shifted are none of the mask's.

    Args:
        logged: the batch as logged.
        clean: the same without the tokens that other checks excluded.
    """
    seen = measure(logged)
    if seen.rows < FEWEST_ROWS:
        return {}
    named: list[tuple[tuple[str, ...], Ints]] = [((n,), c) for n, c in seen.impossible.items()]
    if len(logged.logp) > 1:
        named.append((tuple(logged.logp), seen.blank))
    named += [(RATIOS[ratio], counts) for ratio, counts in seen.disagree.items()]
    hits = [
        (names, place)
        for place in (0, 1)
        for names, counts in named
        if counts[place] >= EDGE_SHARE * seen.rows and counts[2] <= INSIDE_SHARE * seen.inside
    ]
    if not hits:
        return {}
    kept = Kept(clean)
    moved = untrusted({ratio: shifts.measure(kept, ratio) for ratio in clean.ratios()})
    shifted = {name for ratio in moved for name in RATIOS[ratio]}
    found: dict[int, str] = {}
    for names, place in hits:
        if not shifted.intersection(names):
            found.setdefault(place, names[-1])
    return {(name, PLACES[place]): _edge(logged, place) for place, name in found.items()}


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
