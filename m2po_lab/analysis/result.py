"""Analysis: what one scan found, mergeable, and its report."""

from dataclasses import dataclass, field
from typing import Any

from m2po_lab.analysis.bins import PROBABILITY_EDGES, QUADRANTS, position_range
from m2po_lab.analysis.cells import Cells
from m2po_lab.analysis.finish import Stats, statistics
from m2po_lab.analysis.options import Options
from m2po_lab.analysis.tables import SETS, RatioTables
from m2po_lab.core.batch import RATIOS
from m2po_lab.core.sequence import KINDS

SCHEMA = "m2po-lab/report/1"


@dataclass(eq=False)
class Analysis:
    """Everything a scan keeps: integers, sums and histograms, whatever the size of the log.

    Attributes:
        options: what was asked for.
        ratios: ratio -> its tables, for every ratio of which a token was seen.
        tokens: "logged", "kept" and the exclusions of the report.
        rows: "read", "kept" and the exclusions of the report.
        inputs: one entry a file or directory, as the report has them.
        partial: the log was not read to its end.
    """

    options: Options = field(default_factory=Options)
    ratios: dict[str, RatioTables] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=lambda: {"logged": 0, "kept": 0})
    rows: dict[str, int] = field(default_factory=lambda: {"read": 0, "kept": 0})
    inputs: list[dict[str, Any]] = field(default_factory=list)
    partial: bool = False

    @property
    def primary(self) -> str | None:
        """The first available ratio, in the order current/behavior, proximal/behavior, ..."""
        return next((name for name in RATIOS if name in self.ratios), None)

    def absorb(self, other: "Analysis") -> None:
        """Add another analysis to this one, in place.

        Raises:
            ValueError: it was made with other options.
        """
        if self.options != other.options:
            raise ValueError(
                f"analyses with different options do not merge: {self.options} and "
                f"{other.options}; scan both logs with the same options"
            )
        for name, tables in other.ratios.items():
            self.ratios.setdefault(name, RatioTables()).absorb(tables)
        for mine, theirs in ((self.tokens, other.tokens), (self.rows, other.rows)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        self.inputs = [*self.inputs, *other.inputs]
        self.partial = self.partial or other.partial

    def merge(self, other: "Analysis") -> "Analysis":
        """Return the analysis of both logs; neither argument changes."""
        merged = Analysis(options=self.options)
        merged.absorb(self)
        merged.absorb(other)
        return merged

    __add__ = merge

    def statistics(self, ratio: str, which: str = "all") -> Stats | None:
        """Return STATS of all, active or nonzero_advantage tokens; None without advantages."""
        tables = self.ratios[ratio]
        if which != "all" and not tables.knows_advantage:
            return None
        return statistics(tables.set(which))[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values: no NaN, keys in a fixed order."""
        return {
            "schema": SCHEMA,
            "partial": self.partial,
            "inputs": self.inputs,
            "tokens": self.tokens,
            "rows": self.rows,
            "primary": self.primary,
            "ratios": {n: self.ratio_report(n) for n in RATIOS if n in self.ratios},
        }

    def ratio_report(self, ratio: str) -> dict[str, Any]:
        """Return one entry of "ratios"."""
        tables = self.ratios[ratio]
        cells = tables.cells
        quadrants = None
        if tables.knows_advantage:
            found = statistics(cells["quadrant"].take(list(range(len(QUADRANTS)))))
            quadrants = dict(zip(QUADRANTS, found, strict=True))
        sequence = statistics(cells["sequence"].take(list(range(len(KINDS)))))
        return {
            **{name: self.statistics(ratio, name) for name in SETS},
            "by_quadrant": quadrants,
            "by_step": _table(cells["step"], lambda key: {"step": key}),
            "by_lag": _table(cells["lag"], lambda key: {"lag": key}),
            "by_position": _table(cells["position"], _position),
            "by_probability": _table(cells["probability"], _probability),
            "sequence": dict(zip(KINDS, sequence, strict=True)),
        }


def _position(key: int) -> dict[str, int]:
    low, high = position_range(key)
    return {"low": low, "high": high}


def _probability(key: int) -> dict[str, float]:
    return {"low": PROBABILITY_EDGES[key], "high": PROBABILITY_EDGES[key + 1]}


def _table(cells: Cells, label: Any) -> list[Stats] | None:
    """STATS of every cell, ascending by key, each with its label; None for an empty table."""
    if not len(cells):
        return None
    keys = cells.sorted_keys()
    found = statistics(cells.take(keys))
    return [{**label(key), **stats} for key, stats in zip(keys, found, strict=True)]
