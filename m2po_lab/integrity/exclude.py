"""Which tokens cannot be counted, each under the first reason that applies to it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from m2po_lab.integrity import blank, edges, faults, zeros
from m2po_lab.integrity.additive import Bools, Floats
from m2po_lab.integrity.edges import EDGE
from m2po_lab.integrity.evidence import TokenCounts
from m2po_lab.integrity.faults import Charge, Faults
from m2po_lab.integrity.flat import Flat
from m2po_lab.integrity.marks import Marks, edge_marks

Hits = dict[tuple[str, str], Bools]
"""(column, what) -> kept tokens with the fault."""


def unaligned(flat: Flat) -> Bools:
    """(B,) rows whose columns do not belong to the same tokens: wrong length, or other ids."""
    apart = np.zeros(flat.n_rows, np.bool_)
    for rows in (flat.rows.unaligned, flat.rows.retokenised):
        if rows is not None:
            apart |= rows
    return apart


@dataclass(frozen=True, eq=False)
class Exclusion:
    """What a batch loses, and what was seen on the way.

    Args:
        keep: (N,) tokens that are left.
        tokens: the counts.
        faults: where each fault was met.
        fault_rows: kind -> rows with such a token.
        marks: what nearly every row shows, see `marks`.
    """

    keep: Bools
    tokens: TokenCounts
    faults: Faults
    fault_rows: dict[str, int]
    marks: Marks


def exclude(flat: Flat, logged: Flat, repeated: Bools, given: Collection[Charge] = ()) -> Exclusion:
    """Go through the faults in order of precedence.

    Args:
        flat: the batch as read.
        logged: the same without a kept token in duplicate rows.
        repeated: (B,) those rows.
        given: what the whole log convicts; beside it the batch is judged by itself.
    """
    aligned = logged.kept(logged.keep & ~np.repeat(unaligned(flat), flat.lengths))
    keep, counts = aligned.keep, {"unaligned": int(logged.keep.sum() - aligned.keep.sum())}
    found: Faults = {}
    rows: dict[str, int] = {}

    def take(kind: str, now: Hits) -> None:
        nonlocal keep
        for (column, what), hit in now.items():
            found[kind, column, what] = faults.fault(flat, hit, column)
        bad = np.any(list(now.values()), axis=0) if now else np.zeros_like(keep)
        counts[kind] = int(bad.sum())
        if now:
            rows[kind] = int(np.unique(flat.row[bad]).size)
            keep = keep & ~bad

    for kind, test in VALUES.items():
        take(kind, test(flat.kept(keep)))
    filled, marks = _zero_filled(flat.kept(keep), given)
    take("zero_filled", filled)
    marks = edge_marks(marks, aligned, flat.kept(keep), given)
    take(EDGE, _met({k: hit & keep for k, hit in edges.hits(aligned, marks.applied).items()}))
    duplicate = np.repeat(repeated, flat.lengths)
    tokens = TokenCounts(
        logged=int(keep.size),
        kept=int(keep.sum()),
        masked=int((~flat.keep & ~duplicate).sum()),
        duplicate=int(duplicate.sum()),
        **counts,
    )
    return Exclusion(keep, tokens, found, rows, marks)


def _sentinel(flat: Flat) -> Hits:
    return _each(flat, faults.sentinel)


def _positive(flat: Flat) -> Hits:
    """Behavior log-probs derived from logged weights may be above 0: they stand for a ratio."""
    found = _each(flat, faults.positive)
    derived = _derived(flat)
    if derived is not None and ("behavior_logp", "") in found:
        found["behavior_logp", ""] &= ~derived
    return _met(found)


def _zero_filled(flat: Flat, given: Collection[Charge]) -> tuple[Hits, Marks]:
    """Padding without a mask, then zeros that another column contradicts."""
    blanks = blank.measure(flat)
    charges = blank.judge(blanks) | {*given}
    found: Hits = blank.hits(flat, charges)
    rest = flat.kept(flat.keep & ~np.any([*found.values()], axis=0)) if found else flat
    runs = zeros.contradicted(rest)
    filled = zeros.measure(rest, runs)
    charges |= zeros.judge(filled)
    found["behavior_logp", ""] = runs | zeros.like_the_convicted(rest, charges)
    return _met(found), Marks.of(charges, flat.n_rows, blanks=blanks, filled=filled)


def _met(hits: Hits) -> Hits:
    return {key: hit for key, hit in hits.items() if hit.any()}


def _each(flat: Flat, test: Callable[[str, Floats], Bools]) -> Hits:
    hits = {(name, ""): flat.keep & test(name, values) for name, values in flat.logp.items()}
    return _met(hits)


def _derived(flat: Flat) -> Bools | None:
    """Tokens whose behavior log-prob a reader computed as numerator - log(weight)."""
    weights = flat.rows.weights
    numerator = flat.logp.get("proximal_logp", flat.logp.get("current_logp"))
    if weights is None or numerator is None or "behavior_logp" not in flat.logp:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(flat.logp["behavior_logp"] == numerator - np.log(weights))


VALUES: dict[str, Callable[[Flat], Hits]] = {
    "non_finite": faults.non_finite,
    "sentinel": _sentinel,
    "positive": _positive,
}
"""Kind -> test of single values, in order of precedence."""
