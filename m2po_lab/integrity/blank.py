"""Padding without a mask: rows filled up with 0.0 in every log-prob column.

Such tokens have d = 0 and dilute every mean. A certain token also has 0.0 on both sides, so the
form decides: the zeros stand at one end of most rows and hardly anywhere else, and they either run
long or fill the rows up to one length.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from m2po_lab.integrity.additive import Additive, Bools, Ints, Span, span
from m2po_lab.integrity.faults import Charge
from m2po_lab.integrity.flat import Flat

FEWEST_ROWS = 8
MOST_ROWS = 0.5
"""Share of the rows that must end (or start) in a run of zeros."""
INSIDE = 0.02
"""Share of the other tokens that may be 0.0 in every column."""
LONG_RUN = 8
"""Mean run that no honest ending of certain tokens has where the rest is uncertain."""
SHORT_RUN, LENGTHS = 2, 3
"""Shorter runs are padding if rows have one length and the runs have several."""
KIND, ENDS = "zero_filled", ("end", "start")
AS_PADDING = "as padding"
"""What such a token is excluded for, followed by the end it stands at."""


@dataclass(frozen=True)
class Few:
    """The smallest `LENGTHS` of a set of numbers."""

    values: tuple[int, ...] = ()

    def __add__(self, other: "Few") -> "Few":
        """The smallest of the union."""
        return Few(tuple(sorted({*self.values, *other.values})[:LENGTHS]))


@dataclass(frozen=True)
class Runs(Additive):
    """Runs of 0.0 in every column at one end of the rows.

    Args:
        rows: rows with a kept token.
        padded: those that end (or start) in a run of `SHORT_RUN` or more.
        tokens: tokens in these runs.
        inside: other such zeros.
        rest: kept tokens outside the runs.
        width: fewest and most kept tokens of a row.
        lengths: some lengths of runs.
    """

    rows: int
    padded: int
    tokens: int
    inside: int
    rest: int
    width: Span | None
    lengths: Few


@dataclass(frozen=True)
class Blanks(Additive):
    """Runs at the end and at the start of the rows."""

    end: Runs
    start: Runs


def judge(seen: Blanks | None) -> set[Charge]:
    """At which ends the runs are padding."""
    if seen is None:
        return set()
    return {
        (KIND, "", f"{AS_PADDING} at the {end}") for end in ENDS if _is_padding(vars(seen)[end])
    }


def _is_padding(runs: Runs) -> bool:
    if runs.rows < FEWEST_ROWS or runs.padded < MOST_ROWS * runs.rows:
        return False
    if runs.inside > INSIDE * runs.rest or runs.width is None:
        return False
    is_filled_up = runs.width.low == runs.width.high and len(runs.lengths.values) >= LENGTHS
    return is_filled_up or runs.tokens >= LONG_RUN * runs.padded


def measure(flat: Flat) -> Blanks | None:
    """Measure the runs of a batch; None with less than two columns."""
    blank = _blank(flat)
    if blank is None:
        return None
    kept = flat.per_row(flat.keep)
    found = {}
    for end in ENDS:
        run = _edge_runs(flat, blank, end)
        length: Ints = flat.per_row(run)[kept > 0].astype(np.int64)
        padded = length >= SHORT_RUN
        found[end] = Runs(
            rows=int(length.size),
            padded=int(padded.sum()),
            tokens=int(length[padded].sum()),
            inside=int(blank.sum() - run.sum()),
            rest=int(flat.keep.sum() - run.sum()),
            width=span(kept[kept > 0]),
            lengths=Few(tuple(np.unique(length).tolist()[:LENGTHS])),
        )
    return Blanks(**found)


def hits(flat: Flat, charges: Collection[Charge]) -> dict[tuple[str, str], Bools]:
    """(column, what) -> kept tokens of runs that fill rows up, at that end of all rows.

    Args:
        flat: the tokens still counted.
        charges: at which ends runs are padding, as `judge` says.
    """
    blank = _blank(flat)
    if blank is None:
        return {}
    column = "behavior_logp" if "behavior_logp" in flat.logp else next(iter(flat.logp))
    return {
        (column, f"{AS_PADDING} at the {end}"): _edge_runs(flat, blank, end)
        for end in ENDS
        if (KIND, "", f"{AS_PADDING} at the {end}") in charges
    }


def _blank(flat: Flat) -> Bools | None:
    if len(flat.logp) < 2:
        return None
    zero = np.all([values == 0.0 for values in flat.logp.values()], axis=0)
    return np.asarray(flat.keep & zero)


def _edge_runs(flat: Flat, blank: Bools, end: str) -> Bools:
    """Blank tokens with nothing but blank ones between them and that end of their row."""
    if not blank.any():
        return blank
    other = np.flatnonzero(flat.keep & ~blank)
    low, high = flat.lengths.copy(), np.full(flat.n_rows, -1, np.int64)
    row, position = flat.row[other], flat.position[other]
    np.minimum.at(low, row, position)
    np.maximum.at(high, row, position)
    if end == "end":
        return np.asarray(blank & (flat.position > high[flat.row]))
    return np.asarray(blank & (flat.position < low[flat.row]) & (high >= 0)[flat.row])
