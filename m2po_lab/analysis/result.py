"""Analysis: what one scan found, mergeable; `report` turns it into the JSON report."""

import copy
from dataclasses import dataclass, field
from typing import Any

from m2po_lab.analysis.facts import Facts
from m2po_lab.analysis.finish import Stats, statistics
from m2po_lab.analysis.options import Options
from m2po_lab.analysis.sample import Sample
from m2po_lab.analysis.tables import RatioTables
from m2po_lab.analysis.worst import Worst
from m2po_lab.core.batch import RATIOS
from m2po_lab.integrity import BatchIntegrity
from m2po_lab.logs.metrics import MetricSeries


@dataclass(eq=False)
class Analysis:
    """Everything a scan keeps: integers, sums, histograms and a bounded sample of tokens.

    Attributes:
        options: what was asked for.
        ratios: ratio -> its tables, for every ratio whose two columns the log has.
        worst: ratio -> tokens with the largest |d|.
        facts: rewards, lengths, groups, entropy and advantages by row and step.
        sample: tokens for what-ifs that sums cannot answer.
        integrity: what was met before a number was trusted.
        tokens: "logged" and "kept" so far.
        rows: "read" and "kept" so far; "bad", rows that could not be read.
        metrics: series of metric files that were read beside the tokens.
        inputs: one entry a file or directory, as the report has them.
        partial: the log was not read to its end.
    """

    options: Options = field(default_factory=Options)
    ratios: dict[str, RatioTables] = field(default_factory=dict)
    worst: dict[str, Worst] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    sample: Sample = field(default_factory=Sample)
    integrity: BatchIntegrity = field(default_factory=BatchIntegrity)
    tokens: dict[str, int] = field(default_factory=lambda: {"logged": 0, "kept": 0})
    rows: dict[str, int] = field(default_factory=lambda: {"read": 0, "kept": 0, "bad": 0})
    metrics: list[MetricSeries] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    partial: bool = False
    _numbers: dict[str, Any] | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be computed again."""
        return {**self.__dict__, "_numbers": None}

    def forget(self) -> None:
        """Drop numbers computed before something was added."""
        self._numbers = None

    @property
    def primary(self) -> str | None:
        """The first computable ratio, in the order current/behavior, proximal/behavior, ..."""
        return next(iter(self.computable), None)

    @property
    def computable(self) -> dict[str, RatioTables]:
        """Tables of the ratios whose columns belong to the same tokens, in the order of RATIOS."""
        untrusted = self.integrity.untrusted()
        return {n: self.ratios[n] for n in RATIOS if n in self.ratios and n not in untrusted}

    def absorb(self, other: "Analysis") -> None:
        """Add another analysis to this one, in place; the other one stays as it is.

        Raises:
            ValueError: it was made with other options.
        """
        if self.options != other.options:
            raise ValueError(
                f"analyses with different options do not merge: {self.options} and "
                f"{other.options}; scan both logs with the same options"
            )
        self.forget()
        for name, tables in other.ratios.items():
            self.ratios.setdefault(name, RatioTables()).absorb(tables)
            self.worst.setdefault(name, Worst(self.options.worst)).absorb(other.worst[name])
        self.facts.absorb(other.facts)
        self.sample.absorb(other.sample)
        self.integrity = self.integrity + other.integrity
        for mine, theirs in ((self.tokens, other.tokens), (self.rows, other.rows)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        self.metrics = series_joined([*self.metrics, *other.metrics])
        self.inputs = joined([*self.inputs, *other.inputs])
        self.partial = self.partial or other.partial

    def merge(self, other: "Analysis") -> "Analysis":
        """Return the analysis of both logs; neither argument changes.

        Raises:
            ValueError: they were made with different options.
        """
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
        """Return the report without findings as plain JSON values: no NaN, keys in fixed order."""
        from m2po_lab.analysis.report import numbers, report

        if self._numbers is None:
            self._numbers = numbers(self)
        return report(self, copy.deepcopy(self._numbers))


def series_joined(metrics: list[MetricSeries]) -> list[MetricSeries]:
    """Return one series a name and framework; later files follow earlier ones."""
    found: dict[tuple[str, str], MetricSeries] = {}
    for series in metrics:
        key = (series.name, series.framework)
        found[key] = found[key].followed_by(series) if key in found else series
    return list(found.values())


def joined(inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one entry a path and format: counts add up, columns are all that were taken."""
    found: dict[tuple[Any, Any], dict[str, Any]] = {}
    for entry in inputs:
        key = (entry.get("path"), entry.get("format"))
        if key not in found:
            found[key] = copy.deepcopy(entry)
            continue
        for name in ("files", "rows", "tokens"):
            found[key][name] += entry[name]
        found[key]["columns"] |= entry["columns"]
        remarks = found[key].setdefault("remarks", [])
        remarks += [text for text in entry.get("remarks", []) if text not in remarks]
        found[key]["missing_flag"] = found[key].get("missing_flag") or entry.get("missing_flag")
    return list(found.values())
