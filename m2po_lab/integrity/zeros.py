"""Behavior log-probs that are exactly 0.0: filled in, or an honest certainty?

A sampler may well give a token probability 1 to the last bit, so a single 0.0 says nothing. A run
of them on tokens to which another policy column gives less than 95 % does: those were never sampled
(tool output, padding, a missing value turned into 0).
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from m2po_lab.integrity.additive import Additive, Bools, Floats, Ints
from m2po_lab.integrity.faults import Charge
from m2po_lab.integrity.flat import Flat

DOUBT = -0.05
"""Below this log-prob the other column contradicts a certainty; rounding of a certain token does
not reach it."""
RUN_AGAINST_PROXIMAL = 2
RUN_AGAINST_CURRENT = 3
"""Shortest run that counts. The current policy may have been updated since and have left a certain
token honestly, so it takes one token more to convict."""
NEARLY_ALL = 0.9
"""Share of the tokens that were filled in, from which the column was never logged."""
EVERYWHERE: Charge = ("zero_filled", "behavior_logp", "everywhere")
WHOLE_ROWS: Charge = ("zero_filled", "behavior_logp", "whole rows")
LONG_RUN_DOUBTS, LONG_RUN_SHARE = 4, 0.2
"""Text that a sharp policy mostly foresees: a fifth of a run convicts it from so many tokens on."""


@dataclass(frozen=True)
class Filled(Additive):
    """How much of the behavior column was filled in.

    Args:
        kept: tokens looked at.
        tokens: those in a run that another column contradicts.
        rows: rows that are such a run as a whole.
    """

    kept: int = 0
    tokens: int = 0
    rows: int = 0


def judge(seen: Filled) -> set[Charge]:
    """Whether single zeros, or short rows of them, go with the runs that are filled in."""
    found = set()
    if seen.tokens and seen.tokens >= NEARLY_ALL * seen.kept:
        found.add(EVERYWHERE)
    if seen.rows:
        found.add(WHOLE_ROWS)
    return found


def measure(flat: Flat, runs: Bools) -> Filled:
    """Measure a batch.

    Args:
        flat: the tokens still counted.
        runs: (N,) those in a `contradicted` run.
    """
    kept, filled = flat.per_row(flat.keep), flat.per_row(runs)
    whole = (kept > 0) & (filled == kept)
    return Filled(int(flat.keep.sum()), int(runs.sum()), int(whole.sum()))


def contradicted(flat: Flat) -> Bools:
    """Kept tokens in a run of exact 0.0 that another column contradicts on half of it, or on many.

    Without behavior log-probs, or without another column, nothing is found.

    Returns:
        (N,) boolean; whole runs, the tokens that the other column finds likely included.
    """
    zero, other = _zero(flat), _other(flat)
    if other is None or not zero.any():
        return np.zeros(flat.keep.shape, dtype=np.bool_)
    shortest = RUN_AGAINST_PROXIMAL if "proximal_logp" in flat.logp else RUN_AGAINST_CURRENT
    return _contradicted_runs(flat, zero, flat.keep, other, shortest)


def like_the_convicted(flat: Flat, charges: Collection[Charge]) -> Bools:
    """Rows too short for a verdict of their own, where other rows were filled in whole.

    A row of zeros alone is one of those if the other column contradicts half of it. Where nearly
    the whole column is filled in, no 0.0 of it is a certainty.
    """
    zero, other = _zero(flat), _other(flat)
    if other is None or not zero.any() or not charges:
        return np.zeros(flat.keep.shape, dtype=np.bool_)
    if EVERYWHERE in charges:
        return zero
    if WHOLE_ROWS not in charges:
        return np.zeros(flat.keep.shape, dtype=np.bool_)
    kept, doubted = flat.per_row(flat.keep), flat.per_row(zero & (other < DOUBT))
    rows = (kept > 0) & (flat.per_row(zero) == kept) & (2 * doubted >= kept)
    return np.asarray(zero & np.repeat(rows, flat.lengths))


def _zero(flat: Flat) -> Bools:
    behavior = flat.logp.get("behavior_logp")
    return (
        np.zeros(flat.keep.shape, np.bool_) if behavior is None else flat.keep & (behavior == 0.0)
    )


def _other(flat: Flat) -> Floats | None:
    return flat.logp.get("proximal_logp", flat.logp.get("current_logp"))


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


def run_number(hit: Bools, row: Ints) -> Ints:
    """Number the maximal stretches of equal `hit` within a row."""
    change = np.ones(hit.shape, dtype=np.bool_)
    change[1:] = (hit[1:] != hit[:-1]) | (row[1:] != row[:-1])
    return np.cumsum(change) - 1
