"""What rules look at: report and evidence of a log, cut into cells with their uncertainty."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from m2po_lab.analysis.freshness import Freshness, freshness
from m2po_lab.integrity import BatchIntegrity
from m2po_lab.integrity.additive import Floats
from m2po_lab.integrity.pairs import MAGNITUDES, Pair
from m2po_lab.integrity.shifts import Limits, untrusted
from m2po_lab.integrity.steps import Step
from m2po_lab.logs.metrics import MetricSeries
from m2po_lab.logs.rows import UNKNOWN

NORMAL = 1.96


class Settings(Protocol):
    """The options of an analysis that findings speak about."""

    @property
    def budget(self) -> float:
        """Budget tau of M2PO, nats^2."""

    @property
    def clip_low(self) -> float:
        """Lower clip range eps."""

    @property
    def clip_high(self) -> float:
        """Upper clip range eps."""


class Analyzed(Protocol):
    """An analysis, as far as findings need one."""

    @property
    def options(self) -> Settings:
        """What was asked for."""

    @property
    def integrity(self) -> BatchIntegrity:
        """What was met before a number was trusted."""

    @property
    def metrics(self) -> Sequence[MetricSeries]:
        """Series of metric files."""

    def to_dict(self) -> dict[str, Any]:
        """The report."""


@dataclass(frozen=True)
class Cell:
    """M2 of some tokens and its 95 % interval.

    Args:
        n: tokens.
        rows: rows they come from.
        m2: nats^2, NaN for none.
        low, high: interval with rows as clusters, on a log scale; NaN below two rows.
    """

    n: int
    rows: int
    m2: float
    low: float
    high: float

    def evidence(self) -> dict[str, Any]:
        """For a finding."""
        return {"n": self.n, "rows": self.rows, "m2": self.m2, "low": self.low, "high": self.high}


def cell(sums: Floats) -> Cell:
    """Finish a cell's sums (see `integrity.steps.CELL_SUMS`).

    The variance of M2 = sum S_i / sum n_i over rows i is that of a ratio of totals:
    sum (S_i - M2 n_i)^2 / (sum n_i)^2, times rows / (rows - 1).
    """
    n, rows, _, square, row_square, row_cross, row_count, _ = sums.tolist()
    if n == 0:
        return Cell(0, 0, math.nan, math.nan, math.nan)
    m2 = square / n
    if rows < 2 or m2 == 0:
        return Cell(int(n), int(rows), m2, *((m2, m2) if m2 == 0 else (math.nan, math.nan)))
    variance = max(row_square - 2 * m2 * row_cross + m2 * m2 * row_count, 0.0) / n**2
    spread = NORMAL * math.sqrt(variance * rows / (rows - 1)) / m2
    return Cell(int(n), int(rows), m2, m2 * math.exp(-spread), m2 * math.exp(min(spread, 700.0)))


@dataclass(frozen=True, eq=False)
class View:
    """One log, for rules.

    Args:
        report: as `Analysis.to_dict` gives it.
        evidence: what the integrity checks added up.
        limits: thresholds by name.
        settings: budget and clip of the analysis.
        metrics: series of metric files.
    """

    report: dict[str, Any]
    evidence: BatchIntegrity
    limits: Mapping[str, float]
    settings: Settings
    metrics: Sequence[MetricSeries]

    @cached_property
    def shifted(self) -> dict[str, str]:
        """Ratios whose columns are not aligned."""
        limits = Limits(
            correlation=self.limits["shift_correlation"],
            margin=self.limits["shift_margin"],
            pairs=self.limits["shift_pairs"],
            row_share=self.limits["shift_row_share"],
        )
        return untrusted(self.evidence.shifts, limits)

    @cached_property
    def pairs(self) -> dict[str, Pair]:
        """Ratios that can be computed, with at least one kept token."""
        pairs = self.evidence.pairs
        return {r: p for r, p in pairs.items() if r not in self.shifted and p.n.sum() > 0}

    @property
    def engine_ratio(self) -> str | None:
        """The ratio in which engines are compared: proximal/behavior, else current/behavior."""
        for ratio in ("proximal/behavior", "current/behavior"):
            if ratio in self.evidence.pairs:
                return ratio if ratio in self.pairs else None
        return None

    def statistics(self, ratio: str, which: str = "all") -> Mapping[str, Any]:
        """STATS of the report for a ratio; empty if it has none."""
        return (self.report["ratios"].get(ratio) or {}).get(which) or {}

    def enough(self, found: Cell) -> bool:
        """Whether a cell has tokens and rows enough for a verdict."""
        return found.n >= self.limits["min_tokens"] and found.rows >= self.limits["min_rows"]

    def pool(self, ratio: str, where: Callable[[int, int, int], bool]) -> Cell:
        """Cell of all (step, trainer version, lag) that `where` accepts."""
        table = self.evidence.cells.get(ratio, {})
        chosen = [sums for key, sums in table.items() if where(*key)]
        return cell(np.sum(chosen, axis=0) if chosen else np.zeros(8))

    def by_lag(self, ratio: str) -> dict[int, Cell]:
        """Cells by known lag, ascending; intervals are the report's where it has them."""
        lags = {lag for _, _, lag in self.evidence.cells.get(ratio, {}) if lag != UNKNOWN}
        table = {lag: self.pool(ratio, _of_lag(lag)) for lag in sorted(lags)}
        for row in (self.report["ratios"].get(ratio) or {}).get("by_lag") or ():
            if row["lag"] in table and row["m2_low"] is not None and row["m2_high"] is not None:
                known = table[row["lag"]]
                table[row["lag"]] = replace(known, low=row["m2_low"], high=row["m2_high"])
        return table

    @property
    def steps(self) -> list[tuple[int, Step]]:
        """Steps that the log names, ascending."""
        return sorted((s, step) for s, step in self.evidence.steps.items() if s != UNKNOWN)

    @property
    def knows_lag(self) -> bool:
        """Whether some kept token has a known lag."""
        return self.evidence.versions is not None and self.evidence.versions.known > 0

    def stratum(self, pair: Pair) -> slice:
        """The tokens in which engines are compared: lag 0, or all if no lag is known to be 0."""
        return slice(0, 1) if pair.n[0] > 0 else slice(0, 2)

    def freshness(self, ratio: str) -> Freshness:
        """Whether every lag lies within the updates made on one rollout batch."""
        return freshness(self.evidence, ratio)


def _of_lag(wanted: int) -> Callable[[int, int, int], bool]:
    return lambda step, trained, lag: lag == wanted


def share_beyond(counts: Floats, edge: float) -> float:
    """How many of the counts by magnitude lie beyond |d| = edge, interpolated within its bin."""
    if edge <= MAGNITUDES[0]:
        return float(counts[1:].sum())
    at = int(np.searchsorted(MAGNITUDES, edge, side="right"))
    beyond = float(counts[at + 1 :].sum())
    if at < len(MAGNITUDES):
        low, high = MAGNITUDES[at - 1], MAGNITUDES[at]
        beyond += float(counts[at]) * math.log(high / edge) / math.log(high / low)
    return beyond


def rank_correlation(values: Iterable[float]) -> float:
    """Spearman's correlation of a series with its order; NaN below three values or if constant."""
    series = np.asarray(list(values), dtype=np.float64)
    if series.size < 3 or np.ptp(series) == 0:
        return math.nan
    ranks = np.argsort(np.argsort(series, kind="stable"), kind="stable").astype(np.float64)
    return float(np.corrcoef(np.arange(series.size), ranks)[0, 1])
