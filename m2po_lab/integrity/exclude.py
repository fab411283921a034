"""Which tokens cannot be counted, each under the first reason that applies to it."""

from collections.abc import Callable

import numpy as np

from m2po_lab.integrity import faults
from m2po_lab.integrity.additive import Bools, Floats
from m2po_lab.integrity.blank import padding
from m2po_lab.integrity.edges import off_by_one
from m2po_lab.integrity.evidence import TokenCounts
from m2po_lab.integrity.faults import Faults
from m2po_lab.integrity.flat import Flat
from m2po_lab.integrity.zeros import zero_filled

Hits = dict[tuple[str, str], Bools]
"""(column, what) -> kept tokens with the fault."""


def unaligned(flat: Flat) -> Bools:
    """(B,) rows whose columns do not belong to the same tokens: wrong length, or other ids."""
    apart = np.zeros(flat.n_rows, np.bool_)
    for rows in (flat.rows.unaligned, flat.rows.retokenised):
        if rows is not None:
            apart |= rows
    return apart


def exclude(
    flat: Flat, logged: Flat, repeated: Bools
) -> tuple[Bools, TokenCounts, Faults, dict[str, int]]:
    """Go through the faults in order of precedence.

    Args:
        flat: the batch as read.
        logged: the same without a kept token in duplicate rows.
        repeated: (B,) those rows.

    Returns:
        The reduced keep; the counts; where each fault was met; kind -> rows with such a token.
    """
    keep = logged.keep & ~np.repeat(unaligned(flat), flat.lengths)
    counts = {"unaligned": int(logged.keep.sum() - keep.sum())}
    found: Faults = {}
    rows: dict[str, int] = {}
    for kind, test in TESTS.items():
        now = test(flat.kept(keep))
        counts[kind] = 0
        for (column, what), hit in now.items():
            found[kind, column, what] = faults.fault(flat, hit, column)
        if now:
            bad = np.any(list(now.values()), axis=0)
            counts[kind] = int(bad.sum())
            rows[kind] = int(np.unique(flat.row[bad]).size)
            keep = keep & ~bad
    edge = off_by_one(
        logged.kept(logged.keep & ~np.repeat(unaligned(flat), flat.lengths)), flat.kept(keep)
    )
    for (column, place), hit in edge.items():
        found["edge", column, place] = faults.fault(flat, hit & keep, column)
    lost = keep & np.any([*edge.values()], axis=0) if edge else np.zeros_like(keep)
    keep = keep & ~lost
    duplicate = np.repeat(repeated, flat.lengths)
    tokens = TokenCounts(
        logged=int(keep.size),
        kept=int(keep.sum()),
        masked=int((~flat.keep & ~duplicate).sum()),
        duplicate=int(duplicate.sum()),
        edge=int(lost.sum()),
        **counts,
    )
    return keep, tokens, found, rows


def _sentinel(flat: Flat) -> Hits:
    return _each(flat, faults.sentinel)


def _positive(flat: Flat) -> Hits:
    """Behavior log-probs derived from logged weights may be above 0: they stand for a ratio."""
    found = _each(flat, faults.positive)
    derived = _derived(flat)
    if derived is not None and ("behavior_logp", "") in found:
        found["behavior_logp", ""] &= ~derived
    return {key: hit for key, hit in found.items() if hit.any()}


def _zero_filled(flat: Flat) -> Hits:
    blank = padding(flat, flat.keep)
    hit = zero_filled(flat, flat.keep & ~blank)
    column = "behavior_logp" if "behavior_logp" in flat.logp else next(iter(flat.logp), "")
    found = {("behavior_logp", ""): hit, (column, "as padding"): blank}
    return {key: hit for key, hit in found.items() if hit.any()}


def _each(flat: Flat, test: Callable[[str, Floats], Bools]) -> Hits:
    hits = {(name, ""): flat.keep & test(name, values) for name, values in flat.logp.items()}
    return {key: hit for key, hit in hits.items() if hit.any()}


def _derived(flat: Flat) -> Bools | None:
    """Tokens whose behavior log-prob a reader computed as numerator - log(weight)."""
    weights = flat.rows.weights
    numerator = flat.logp.get("proximal_logp", flat.logp.get("current_logp"))
    if weights is None or numerator is None or "behavior_logp" not in flat.logp:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(flat.logp["behavior_logp"] == numerator - np.log(weights))


TESTS: dict[str, Callable[[Flat], Hits]] = {
    "non_finite": faults.non_finite,
    "sentinel": _sentinel,
    "positive": _positive,
    "zero_filled": _zero_filled,
}
"""Kind -> test, in order of precedence."""
