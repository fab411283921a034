"""Values that cannot be log-probs of sampled tokens, and where they stand."""

from dataclasses import dataclass, field

import numpy as np

from m2po_lab.integrity.additive import Additive, Bools, Floats, Ints
from m2po_lab.integrity.flat import Flat
from m2po_lab.logs.rows import UNKNOWN

EXAMPLES = 5
"""Places kept for each fault."""
POSITION_BINS = 32
"""Positions are counted in bins 0, 1, 2-3, 4-7, ..."""
ROUNDING = {"behavior_logp": 1e-3, "proximal_logp": 1e-3, "current_logp": 2.0**-4}
"""Log-probs up to this are rounding, above it they are impossible. The current ones are taken
inside the loss, often from bfloat16 logits (spaced 2^-3 above 16) against a float32 normaliser."""
SENTINEL_BELOW = -1000.0
"""No softmax over finite logits of a language model comes near this."""
SENTINELS = (-100.0, -999.0)
"""Fill values above that limit; an honest log-prob equals them exactly with chance near 0."""


@dataclass(frozen=True, order=True)
class Example:
    """One place where a fault was met; ordered by place, so the first few are always the same."""

    source: str
    line: int
    position: int
    row_id: str
    step: int
    column: str
    value: float = field(compare=False)


@dataclass(frozen=True)
class Examples:
    """The first `EXAMPLES` places, merged by order of place."""

    places: tuple[Example, ...] = ()

    def __add__(self, other: "Examples") -> "Examples":
        """The first places of both."""
        return Examples(tuple(sorted({*self.places, *other.places})[:EXAMPLES]))


@dataclass(frozen=True)
class Fault(Additive):
    """How often one fault of one column was met.

    Args:
        tokens: kept tokens with it.
        rows: rows with at least one such token.
        positions: counts by position, bins 0, 1, 2-3, 4-7, ...
        examples: first places.
    """

    tokens: int
    rows: int
    positions: Ints
    examples: Examples


Charge = tuple[str, str, str]
"""(kind, column, what), such as ("non_finite", "behavior_logp", "nan")."""
Faults = dict[Charge, Fault]
"""Where each kind of fault was met."""


def position_bin(position: Ints) -> Ints:
    """Bin of a position: 0 -> 0, 1 -> 1, 2-3 -> 2, 4-7 -> 3, ..."""
    return np.minimum(np.frexp(position.astype(np.float64))[1], POSITION_BINS - 1).astype(np.int64)


def fault(flat: Flat, hit: Bools, column: str) -> Fault:
    """Count the tokens under `hit` and note the first places."""
    index = np.flatnonzero(hit)
    values = flat.logp.get(column)
    return Fault(
        tokens=int(index.size),
        rows=int(np.unique(flat.row[index]).size),
        positions=np.bincount(position_bin(flat.position[index]), minlength=POSITION_BINS),
        examples=examples(flat, index, column, values),
    )


def examples(flat: Flat, index: Ints, column: str, values: Floats | None) -> Examples:
    """First places among token indices; `values` says what stands there."""
    rows, step = flat.rows, flat.row_fact(flat.rows.step)
    line = flat.row_fact(flat.rows.line)
    found = []
    for token in index[:EXAMPLES].tolist():
        row = int(flat.row[token])
        found.append(
            Example(
                source=rows.source[row] if rows.source else "",
                line=int(line[row]) if line[row] != UNKNOWN else row,
                position=int(flat.position[token]),
                row_id=(rows.row_id[row] or "") if rows.row_id else "",
                step=int(step[row]),
                column=column,
                value=float("nan") if values is None else float(values[token]),
            )
        )
    return Examples(tuple(sorted(found)))


def non_finite(flat: Flat) -> dict[tuple[str, str], Bools]:
    """(column, kind) -> tokens whose log-prob is no number; kinds nan, +inf, -inf, null, absent.

    An advantage that is missing in a whole row is unknown, not a fault; a hole in a row is one.
    """
    found: dict[tuple[str, str], Bools] = {}
    for column, values in flat.logp.items():
        bad = flat.keep & ~np.isfinite(values)
        if bad.any():
            for kind, hit in _kinds(flat, column, values).items():
                found[column, kind] = bad & hit
    if flat.advantage is not None:
        known = flat.per_row(np.isfinite(flat.advantage) & flat.keep) > 0
        nan = np.isnan(flat.advantage)
        bad = flat.keep & (np.isinf(flat.advantage) | (nan & np.repeat(known, flat.lengths)))
        if bad.any():
            for kind, hit in _kinds(flat, "advantage", flat.advantage).items():
                found["advantage", kind] = bad & hit
    return {key: hit for key, hit in found.items() if hit.any()}


def _kinds(flat: Flat, column: str, values: Floats) -> dict[str, Bools]:
    nothing = np.zeros(values.shape, dtype=np.bool_)
    null = flat.rows.nulls.get(column, nothing)
    lacking = flat.rows.absent.get(column)
    absent = nothing if lacking is None else np.repeat(lacking, flat.lengths)
    return {
        "nan": np.isnan(values) & ~null & ~absent,
        "+inf": values == np.inf,
        "-inf": values == -np.inf,
        "null": null & ~absent,
        "absent": absent,
    }


def sentinel(column: str, values: Floats) -> Bools:
    """Fill values such as -9999, -1e9 or the lowest float, in any column; finite by now."""
    return (values <= SENTINEL_BELOW) | np.isin(values, SENTINELS)


def positive(column: str, values: Floats) -> Bools:
    """Log-probs above what rounding explains; 1.0 is a common fill value."""
    return values > ROUNDING[column]
