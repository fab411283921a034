"""The tables of one ratio: which tokens go where, and how two logs' tables merge."""

from dataclasses import dataclass, field

import numpy as np

from m2po_lab.analysis.active import LAG, SCOPE, add_lags, add_scopes
from m2po_lab.analysis.bins import (
    ACTIVE,
    COARSE,
    FINE,
    NONZERO,
    QUADRANTS,
    UNKNOWN_ADVANTAGE,
    Bools,
    Floats,
    Ints,
    position_bin,
    probability_bin,
    quadrant,
)
from m2po_lab.analysis.cells import Cells
from m2po_lab.analysis.chunk import Chunk
from m2po_lab.analysis.grouped import group, terms, weighted_count
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
    row, columns, by = chunk.row, chunk.columns, options.by
    keys = {"quadrant": quadrant(d, columns.get("advantage"))}
    if "step" in by:
        keys["step"] = chunk.step[row]
    if "lag" in by:
        keys["lag"] = chunk.lag
    if "position" in by:
        keys["position"] = position_bin(chunk.position)
    if "behavior_logp" in columns:
        keys["probability"] = probability_bin(columns["behavior_logp"])
    every = terms(d, row, chunk.bucket)
    for name, key in keys.items():
        bits, size = TABLES[name]
        known = _known(name, key)
        some = every if known.all() else every.where(known)
        found = group(some, key if some is every else key[known], chunk.n_rows, size, bits)
        tables.cells[name].absorb(found)
    for name, codes in SETS.items():
        inside = np.isin(keys["quadrant"], codes)
        tables.rows[name] += int(np.count_nonzero(np.bincount(row[inside])))
    _add_sequences(tables.cells["sequence"], d, row, chunk)
    if "advantage" in columns:
        _add_active(tables, chunk, d, columns["advantage"], options)


def _add_active(
    tables: RatioTables, chunk: Chunk, d: Floats, advantage: Floats, options: Options
) -> None:
    known = np.isfinite(advantage)
    if not known.all():
        chunk, d, advantage = chunk.where(known), d[known], advantage[known]
    if d.size:
        add_scopes(tables.scopes, chunk, d, advantage)
        add_lags(tables.lags, chunk, d, advantage, options)


def _known(name: str, key: Ints) -> Bools:
    known: Bools = key >= 0 if name == "probability" else key != UNKNOWN
    return known


def _add_sequences(cells: Cells, d: Floats, row: Ints, chunk: Chunk) -> None:
    """Product (sum of d) and geometric (mean of d) sequence ratios, as `core.sequence` has them."""
    count = np.bincount(row, minlength=chunk.n_rows)
    rows = np.flatnonzero(count)
    total = weighted_count(row, d, chunk.n_rows)[rows]
    values = np.concatenate((total, total / count[rows]))
    both = terms(values, np.tile(rows, len(KINDS)), chunk.bucket)
    kind = np.repeat(np.arange(len(KINDS)), rows.size)
    bits, size = TABLES["sequence"]
    cells.absorb(group(both, kind, chunk.n_rows, size, bits))
