"""Padding without a mask: rows filled up with 0.0 in every log-prob column.

Such tokens have d = 0 and dilute every mean. A certain token also has 0.0 on both sides, so the
form decides: the zeros stand at one end of most rows and hardly anywhere else, and they either run
long or fill the rows up to one length.
"""

import numpy as np

from m2po_lab.integrity.additive import Bools, Ints
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


def padding(flat: Flat, keep: Bools) -> Bools:
    """Kept tokens of runs of 0.0 in all log-prob columns (two at least) that fill rows up.

    Args:
        flat: the tokens.
        keep: tokens still counted.

    Returns:
        (N,) boolean, the runs at that end of all rows.
    """
    nothing = np.zeros(keep.shape, dtype=np.bool_)
    if len(flat.logp) < 2 or flat.n_rows < FEWEST_ROWS:
        return nothing
    blank = keep & np.all([values == 0.0 for values in flat.logp.values()], axis=0)
    if not blank.any():
        return nothing
    found = nothing
    for run in (_edge_runs(flat, blank, keep, True), _edge_runs(flat, blank, keep, False)):
        if _is_padding(flat, blank, keep, run):
            found = found | run
    return found


def _edge_runs(flat: Flat, blank: Bools, keep: Bools, at_end: bool) -> Bools:
    """Blank tokens with nothing but blank ones between them and the end (start) of their row."""
    other = np.flatnonzero(keep & ~blank)
    first = np.zeros(flat.n_rows, np.int64)
    last = flat.lengths - 1
    low, high = first + flat.lengths, first - 1
    row, position = flat.row[other], flat.position[other]
    np.minimum.at(low, row, position)
    np.maximum.at(high, row, position)
    if at_end:
        return np.asarray(blank & (flat.position > high[flat.row]) & (last[flat.row] >= 0))
    return np.asarray(blank & (flat.position < low[flat.row]) & (high >= 0)[flat.row])


def _is_padding(flat: Flat, blank: Bools, keep: Bools, run: Bools) -> bool:
    kept = flat.per_row(keep)
    length: Ints = flat.per_row(run)[kept > 0].astype(np.int64)
    padded = length >= SHORT_RUN
    rest = int(keep.sum() - run.sum())
    inside = int(blank.sum() - run.sum())
    if length.size < FEWEST_ROWS or padded.sum() < MOST_ROWS * length.size:
        return False
    if inside > INSIDE * rest:
        return False
    is_filled_up = np.unique(kept[kept > 0]).size == 1 and np.unique(length).size >= LENGTHS
    return bool(is_filled_up or length[padded].mean() >= LONG_RUN)
