"""The tables of one ratio: which tokens go where, and how two logs' tables merge."""

from dataclasses import dataclass, field

import numpy as np

from m2po_lab.analysis.active import LAG, SCOPE, add_lags, add_scopes
from m2po_lab.analysis.bins import (
    ACTIVE,
    COARSE,
    FINE,
    NONZERO,
    PROBABILITY_EDGES,
    QUADRANTS,
    UNKNOWN_ADVANTAGE,
    Floats,
    position_bin,
    probability_bin,
    quadrant,
)
from m2po_lab.analysis.cells import Cells, codes_of
from m2po_lab.analysis.chunk import Chunk
from m2po_lab.analysis.grouped import (
    Terms,
    fill,
    group,
    pieces_by_code,
    pieces_by_run,
    rows_per_group,
    terms,
    weighted_count,
)
from m2po_lab.analysis.keyed import Keyed
from m2po_lab.analysis.options import Options
from m2po_lab.core.sequence import KINDS
from m2po_lab.logs.rows import UNKNOWN

TABLES = {
    "quadrant": (FINE, 4096),
    "sequence": (FINE, 4096),
    "step": (COARSE, 256),
    "lag": (COARSE, 256),
    "position": (COARSE, 256),
    "probability": (COARSE, 256),
}
"""Table -> mantissa bits of its histograms, largest values kept a cell.

top1pct_m2_share is exact up to 100 times as many tokens a cell, pareto_k up to (size / 3)^2.
"""
ALWAYS = ("lag",)
"""Groupings kept whether asked for or not: attribution and reach are read from them."""
SETS = {
    "all": (*NONZERO, QUADRANTS.index("A=0"), UNKNOWN_ADVANTAGE),
    "active": ACTIVE,
    "nonzero_advantage": NONZERO,
}
"""Sets of tokens that are unions of quadrants."""


def _empty_tables() -> dict[str, Cells]:
    return {name: Cells(bits, size) for name, (bits, size) in TABLES.items()}


@dataclass(eq=False)
class RatioTables:
    """Everything about one ratio that the report tabulates.

    Attributes:
        cells: table -> its cells; keys are quadrant codes, steps, lags, bins, 0/1 for the product
            and the geometric sequence ratio.
        scopes: by (step, mini-batch), histogram of the active tokens.
        lags: by lag, active tokens and those a clip drops.
        rows: rows with at least one token of each of `SETS`.
    """

    cells: dict[str, Cells] = field(default_factory=_empty_tables)
    scopes: Keyed = field(default_factory=lambda: Keyed(SCOPE))
    lags: Keyed = field(default_factory=lambda: Keyed(LAG))
    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SETS, 0))

    def absorb(self, other: "RatioTables") -> None:
        """Add another log's tables."""
        for name, cells in other.cells.items():
            self.cells[name].absorb(cells)
        self.scopes.absorb(other.scopes)
        self.lags.absorb(other.lags)
        for name, count in other.rows.items():
            self.rows[name] += count

    def set(self, name: str) -> Cells:
        """Return the one cell of a set of tokens: all, active or nonzero_advantage."""
        cells = self.cells["quadrant"].union(list(SETS[name]))
        cells.columns["rows"][:] = self.rows[name]
        return cells

    @property
    def knows_advantage(self) -> bool:
        """Whether any token has an advantage."""
        return any(key != UNKNOWN_ADVANTAGE for key in self.cells["quadrant"].keys)


def add_chunk(tables: RatioTables, chunk: Chunk, d: Floats, options: Options) -> None:
    """Add the tokens of a chunk to the tables of one ratio.

    Args:
        tables: where to add.
        chunk: kept tokens.
        d: (N,) their log-ratios; a token where it is not finite counts nowhere in this ratio.
        options: which groupings were asked for, and the clip range.
    """
    usable = np.isfinite(d)
    if not usable.all():
        chunk, d = chunk.where(usable), d[usable]
    if d.size == 0:
        return
    t = terms(d, chunk.row, chunk.bucket)
    _add_runs(tables, t, chunk, tuple(dict.fromkeys((*options.by, *ALWAYS))))
    _add_values(tables, t, chunk)
    _add_sequences(tables.cells["sequence"], d, chunk)
    if "advantage" in chunk.columns:
        _add_active(tables, chunk, d, chunk.columns["advantage"], options)


def _add_runs(tables: RatioTables, t: Terms, chunk: Chunk, by: tuple[str, ...]) -> None:
    """Tables whose key stays the same over runs of neighbouring tokens: step, lag, position."""
    position = position_bin(chunk.position)
    change = np.ones(t.d.shape, dtype=np.bool_)
    change[1:] = t.row[1:] != t.row[:-1]
    for values in (position, chunk.lag):
        change[1:] |= values[1:] != values[:-1]
    starts = np.flatnonzero(change)
    pieces, row = pieces_by_run(t, starts), t.row[starts]
    run = np.cumsum(change) - 1
    keys = {"step": chunk.step[row], "lag": chunk.lag[starts], "position": position[starts]}
    for name in by:
        key, some, owner, inside = keys[name], pieces, run, t
        known = key != UNKNOWN
        if not known.all():
            tokens = known[run]
            inside, owner = t.where(tokens), (np.cumsum(known) - 1)[run[tokens]]
            key, some = key[known], pieces.where(known)
        if not key.size:
            continue
        names, code = codes_of(key)
        found = tables.cells[name].empty(names)
        fill(found, some, code, inside, code[owner], tables.cells[name])
        found.columns["rows"][:] = rows_per_group(row[known], code, chunk.n_rows, len(names))
        tables.cells[name].absorb(found)


def _add_values(tables: RatioTables, t: Terms, chunk: Chunk) -> None:
    """Tables whose key may change from token to token: quadrant and behavior probability."""
    columns = chunk.columns
    by_quadrant = quadrant(t.d, columns.get("advantage"))
    by_probability = np.full(t.d.shape, -1)
    if "behavior_logp" in columns:
        by_probability = probability_bin(columns["behavior_logp"])
    width = len(PROBABILITY_EDGES)
    pieces, joint = pieces_by_code(
        t, by_quadrant * width + by_probability + 1, (len(QUADRANTS) + 1) * width
    )
    for name, key, tokens in (
        ("quadrant", joint // width, by_quadrant),
        ("probability", joint % width - 1, by_probability),
    ):
        known = key >= 0
        some, inside = pieces, t
        if not known.all():
            at = tokens >= 0
            some, inside, key, tokens = pieces.where(known), t.where(at), key[known], tokens[at]
        if not key.size:
            continue
        names, code = codes_of(key)
        found = tables.cells[name].empty(names)
        place = np.zeros(max(names) + 1, dtype=np.int64)
        place[names] = np.arange(len(names))
        owner = place[tokens]
        fill(found, some, code, inside, owner, tables.cells[name])
        found.columns["rows"][:] = rows_per_group(inside.row, owner, chunk.n_rows, len(names))
        tables.cells[name].absorb(found)
    for name, codes in SETS.items():
        chosen = np.zeros(len(QUADRANTS) + 1, dtype=np.bool_)
        chosen[list(codes)] = True
        inside_rows = np.zeros(chunk.n_rows, dtype=np.bool_)
        inside_rows[t.row[chosen[by_quadrant]]] = True
        tables.rows[name] += int(inside_rows.sum())


def _add_active(
    tables: RatioTables, chunk: Chunk, d: Floats, advantage: Floats, options: Options
) -> None:
    known = np.isfinite(advantage)
    if not known.all():
        chunk, d, advantage = chunk.where(known), d[known], advantage[known]
    if d.size:
        add_scopes(tables.scopes, chunk, d, advantage)
        add_lags(tables.lags, chunk, d, advantage, options)


def _add_sequences(cells: Cells, d: Floats, chunk: Chunk) -> None:
    """Product (sum of d) and geometric (mean of d) sequence ratios, as `core.sequence` has them."""
    row = chunk.row
    count = np.bincount(row, minlength=chunk.n_rows)
    rows = np.flatnonzero(count)
    total = weighted_count(row, d, chunk.n_rows)[rows]
    values = np.concatenate((total, total / count[rows]))
    both = terms(values, np.tile(rows, len(KINDS)), chunk.bucket)
    kind = np.repeat(np.arange(len(KINDS)), rows.size)
    bits, size = TABLES["sequence"]
    cells.absorb(group(both, kind, chunk.n_rows, size, bits))
