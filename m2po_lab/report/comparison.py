"""Runs against the first of them: differences of statistics with paired bootstrap intervals.

A bootstrap replicate gives a row the same weight in every run, by a hash of its id. So rows that
two runs share are resampled together, which makes the interval of the difference as narrow as it
should be; rows that they do not share are independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m2po_lab.analysis import Analysis
from m2po_lab.analysis.bootstrap import LEVELS, enough, replicates
from m2po_lab.analysis.cells import Cells
from m2po_lab.core.batch import RATIOS

SCHEMA = "m2po-lab/compare/1"
SETS = ("all", "active", "nonzero_advantage")
RESAMPLED = ("m2", "ess_fraction")
"""Statistics of which replicates are at hand, in the order `replicates` gives them."""
PLAIN = ("k1", "k3", "chi2", "log_ratio_min", "log_ratio_max", "top1pct_m2_share")
"""Statistics compared without an interval."""


@dataclass(frozen=True)
class Run:
    """One analyzed run.

    Attributes:
        name: what the user called it.
        scan: its sums.
        report: its report.
    """

    name: str
    scan: Analysis
    report: dict[str, Any]


def compare_runs(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the comparison of all runs with the first as plain JSON values.

    `differences` and `by_lag` hold, for each other run (by its index in `runs`), its value minus
    the first one's; low and high are the 95 % interval, null with too few rows or for statistics
    without replicates.
    """
    shared = [r for r in RATIOS if all(r in run.scan.ratios for run in runs)]
    ratio = shared[0] if shared else None
    pairs = [(runs[0], i, run) for i, run in enumerate(runs) if i and ratio is not None]
    return {
        "schema": SCHEMA,
        "version": runs[0].report["version"],
        "partial": any(run.report["partial"] for run in runs),
        "ratio": ratio,
        "runs": [{"name": run.name, "report": run.report} for run in runs],
        "differences": [
            {"run": i, **d} for a, i, b in pairs for d in _differences(a, b, shared[0])
        ],
        "by_lag": [{"run": i, **d} for a, i, b in pairs for d in _by_lag(a, b, shared[0])],
    }


def _differences(first: Run, other: Run, ratio: str) -> list[dict[str, Any]]:
    """Every statistic of every set of tokens that both runs have."""
    found = []
    for name in SETS:
        a, b = (run.report["ratios"][ratio][name] for run in (first, other))
        if a is None or b is None:
            continue
        cells = [run.scan.ratios[ratio].set(name) for run in (first, other)]
        bounds = _intervals(*cells)
        for statistic in (*RESAMPLED, *PLAIN):
            entry = _entry(a[statistic], b[statistic], bounds.get(statistic))
            found.append({"set": name, "statistic": statistic, **entry})
    return found


def _by_lag(first: Run, other: Run, ratio: str) -> list[dict[str, Any]]:
    """M2 of every lag that both runs have."""
    lines = [
        {line["lag"]: line for line in run.report["ratios"][ratio]["by_lag"] or []}
        for run in (first, other)
    ]
    tables = [run.scan.ratios[ratio].cells["lag"] for run in (first, other)]
    found = []
    for lag in sorted(lines[0].keys() & lines[1].keys()):
        bounds = _intervals(*(table.take([lag]) for table in tables))
        entry = _entry(lines[0][lag]["m2"], lines[1][lag]["m2"], bounds.get("m2"))
        found.append({"lag": lag, **entry})
    return found


def _entry(a: float | None, b: float | None, bounds: Any) -> dict[str, Any]:
    difference = None if a is None or b is None else b - a
    low, high = bounds if bounds is not None and difference is not None else (None, None)
    return {"first": a, "second": b, "difference": difference, "low": low, "high": high}


def _intervals(first: Cells, second: Cells) -> dict[str, tuple[float, float]]:
    """95 % interval of second minus first for the statistics with replicates."""
    if not all(enough(cells)[0] for cells in (first, second)):
        return {}
    found = {}
    for name, a, b in zip(RESAMPLED, replicates(first), replicates(second), strict=True):
        low, high = np.nanquantile(b[0] - a[0], LEVELS).tolist()
        if np.isfinite(low) and np.isfinite(high):
            found[name] = (low, high)
    return found
