"""Behavior log-probs that are exactly 0.0: filled in, or an honest certainty?

A sampler may well give a token probability 1 to the last bit, so a single 0.0 says nothing. A run
of them on tokens to which another policy column gives less than 95 % does: those were never sampled
(tool output, padding, a missing value turned into 0).
"""

import numpy as np

from m2po_lab.integrity.additive import Bools, Floats, Ints
from m2po_lab.integrity.flat import Flat

DOUBT = -0.05
"""Below this log-prob the other column contradicts a certainty; rounding of a certain token does
not reach it."""
RUN_AGAINST_PROXIMAL = 2
RUN_AGAINST_CURRENT = 3
"""Shortest run that counts. The current policy may have been updated since and have left a certain
token honestly, so it takes one token more to convict."""
NEARLY_ALL = 0.9
"""Share of a batch's tokens that were filled in, from which the column was never logged."""
LONG_RUN_DOUBTS, LONG_RUN_SHARE = 4, 0.2
"""Text that a sharp policy mostly foresees: a fifth of a run convicts it from so many tokens on."""


def zero_filled(flat: Flat, keep: Bools) -> Bools:
    """Kept tokens in a run of exact 0.0 that another column contradicts on half of it, or on many.

    Args:
        flat: the tokens; without behavior log-probs, or without another column, nothing is found.
        keep: tokens still counted.

    Returns:
        (N,) boolean; whole runs, the tokens that the other column finds likely included.
    """
    behavior = flat.logp.get("behavior_logp")
    nothing = np.zeros(keep.shape, dtype=np.bool_)
    if behavior is None:
        return nothing
    zero = keep & (behavior == 0.0)
    if not zero.any():
        return nothing
    proximal, current = flat.logp.get("proximal_logp"), flat.logp.get("current_logp")
    other = current if proximal is None else proximal
    if other is None:
        return nothing
    shortest = RUN_AGAINST_CURRENT if proximal is None else RUN_AGAINST_PROXIMAL
    found = _contradicted_runs(flat, zero, keep, other, shortest)
    return found | _like_the_convicted(flat, zero, keep, other, found)


def _contradicted_runs(flat: Flat, zero: Bools, keep: Bools, other: Floats, shortest: int) -> Bools:
    """Runs are over kept tokens: a masked token between two kept ones does not break a run."""
    index = np.flatnonzero(keep)
    hit = zero[index]
    run = run_number(hit, flat.row[index])
    length = np.bincount(run[hit], minlength=int(run.max()) + 1)
    doubted = np.bincount(run[hit], weights=other[index][hit] < DOUBT, minlength=length.shape[0])
    many = (doubted >= LONG_RUN_DOUBTS) & (LONG_RUN_SHARE * length <= doubted)
    guilty = (length >= shortest) & ((2 * doubted >= length) & (doubted > 0) | many)
    found = np.zeros(keep.shape, dtype=np.bool_)
    found[index] = hit & guilty[run]
    return found


def _like_the_convicted(flat: Flat, zero: Bools, keep: Bools, other: Floats, found: Bools) -> Bools:
    """Rows too short for a verdict of their own, where other rows were filled in whole.

    A row of zeros alone is one of those if the other column contradicts half of it. Where nearly
    the whole column is filled in, no 0.0 of it is a certainty.
    """
    kept, filled = flat.per_row(keep), flat.per_row(found)
    whole = (kept > 0) & (filled == kept)
    if not whole.any():
        return np.zeros(keep.shape, dtype=np.bool_)
    if filled.sum() >= NEARLY_ALL * kept.sum():
        return zero
    doubted = flat.per_row(zero & (other < DOUBT))
    rows = (kept > 0) & (flat.per_row(zero) == kept) & (2 * doubted >= kept)
    return np.asarray(zero & np.repeat(rows, flat.lengths))


def run_number(hit: Bools, row: Ints) -> Ints:
    """Number the maximal stretches of equal `hit` within a row."""
    change = np.ones(hit.shape, dtype=np.bool_)
    change[1:] = (hit[1:] != hit[:-1]) | (row[1:] != row[:-1])
    return np.cumsum(change) - 1
