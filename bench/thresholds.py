"""How far every threshold of a finding lies from a false alarm and from a fault that it misses.

    python bench/thresholds.py [--seeds N] [--json FILE]

Each threshold is moved by itself, the others stay. Towards more findings: where does the first
healthy log raise an error or a warning that reads it? Towards fewer: where does the first sick log
lose the finding it was made for? Both are printed, in the threshold's own unit; "-" where a factor
of 1000 changes nothing. Logs are the files of tests/data/pathologies, and with --seeds N so many
of every kind in tests/findings/healthy.py and tests/findings/sick.py.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from m2po_lab.analysis import Analysis
from m2po_lab.analysis.scan import scan
from m2po_lab.findings import TESTS, THRESHOLDS
from m2po_lab.findings.catalog import CATALOG
from m2po_lab.findings.thresholds import resolve
from m2po_lab.findings.view import View
from m2po_lab.logs import open_log
from tests.findings import sick
from tests.findings.healthy import KINDS
from tests.findings.synthetic import analyzed, make

DATA = Path(__file__).resolve().parents[1] / "tests" / "data" / "pathologies"
FARTHEST = 1024.0
STEPS = 14
"""Halvings of the octaves between: the answer is exact to .1 %."""


@dataclass(frozen=True)
class Case:
    """A log, and the finding it must raise; None for a healthy one."""

    name: str
    finding: str | None
    analysis: Analysis
    report: dict[str, Any] = field(repr=False)

    def fires(self, rule: str, limits: Mapping[str, float]) -> bool:
        """Whether a rule speaks up; of healthy logs only above the severity of a note."""
        a = self.analysis
        view = View(self.report, a.integrity, limits, a.options, a.metrics)
        hits = list(TESTS[rule](view))
        if self.finding is not None:
            return bool(hits)
        return any((hit.severity or CATALOG[rule].severity) != "info" for hit in hits)


class Recorder(dict[str, float]):
    """Thresholds that remember which of them were read."""

    def __init__(self, values: Mapping[str, float]) -> None:
        """Start with nothing read."""
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> float:
        """Note the name."""
        self.read.add(name)
        return super().__getitem__(name)


def case(name: str, finding: str | None, analysis: Analysis) -> Case:
    """Finish a log's report once."""
    return Case(name, finding, analysis, analysis.to_dict())


def healthy(seeds: range) -> Iterator[Case]:
    """Logs without a fault."""
    index = json.loads((DATA / "INDEX.json").read_text())
    for name, entry in index.items():
        if entry["healthy"]:
            yield case(name, None, scan(open_log(DATA / f"{name}.jsonl")))
    for kind, run in KINDS.items():
        for seed in seeds:
            yield case(f"{kind}, seed {seed}", None, analyzed(make(seed, run)))


def faulty(seeds: range) -> Iterator[Case]:
    """Logs with one fault each."""
    index = json.loads((DATA / "INDEX.json").read_text())
    for name, entry in index.items():
        if entry["finding"] is not None:
            yield case(name, entry["finding"], scan(open_log(DATA / f"{name}.jsonl")))
    for finding, makers in sick.CASES.items():
        for maker in makers:
            for seed in seeds:
                columns = maker(seed)
                yield case(f"{maker.__name__}, seed {seed}", finding, analyzed(columns))


def turning_point(test: Callable[[float], bool], value: float, factor: float) -> float | None:
    """Where `test` changes between the value and the value times the factor; None if it does not.

    Bisects on a logarithmic scale, so the test must change at most once.
    """
    start, end = test(value), test(value * factor)
    if start == end:
        return None
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if test(value * factor**middle) == start else (low, middle)
    return float(value * factor**high)


def nearest(cases: list[Case], name: str, readers: Mapping[str, set[str]]) -> dict[str, Any]:
    """The turning point nearest to the threshold over all cases, and whose it is."""
    best: dict[str, Any] = {"at": None, "log": None, "rule": None}
    default, value = resolve(), THRESHOLDS[name].value
    for one in cases:
        rules = [one.finding] if one.finding is not None else list(TESTS)
        for rule in rules:
            if rule is None or name not in readers.get(rule, set()):
                continue
            for factor in (FARTHEST, 1 / FARTHEST):
                at = turning_point(
                    lambda v, r=rule, o=one: o.fires(r, {**default, name: v}), value, factor
                )
                if at is not None and (
                    best["at"] is None or _off(at, value) < _off(best["at"], value)
                ):
                    best = {"at": at, "log": one.name, "rule": rule}
    return best


def _off(at: float, value: float) -> float:
    return max(at / value, value / at)


def readers_of(cases: list[Case]) -> dict[str, set[str]]:
    """Rule -> thresholds that it read on any of the logs."""
    found: dict[str, set[str]] = {}
    for one in cases:
        for rule in TESTS:
            limits = Recorder(resolve())
            one.fires(rule, limits)
            found.setdefault(rule, set()).update(limits.read)
    return found


def measured(seeds: range) -> dict[str, Any]:
    """All thresholds on all logs."""
    well, ill = list(healthy(seeds)), list(faulty(seeds))
    readers = readers_of(well + ill)
    return {
        "healthy_logs": len(well),
        "sick_logs": len(ill),
        "false_alarms": [o.name for o in well for r in TESTS if o.fires(r, resolve())],
        "missed": [o.name for o in ill if o.finding and not o.fires(o.finding, resolve())],
        "thresholds": {
            name: {
                "value": THRESHOLDS[name].value,
                "healthy": nearest(well, name, readers),
                "sick": nearest(ill, name, readers),
                "rules": sorted(r for r, read in readers.items() if name in read),
            }
            for name in THRESHOLDS
        },
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = measured(range(options.seeds))
    print(f"{found['healthy_logs']} healthy logs, {found['sick_logs']} sick ones")
    for name, row in found["thresholds"].items():
        ends = [
            "-" if row[side]["at"] is None else f"{row[side]['at']:.3g} ({row[side]['log']})"
            for side in ("healthy", "sick")
        ]
        print(f"{name:20} {row['value']:<8g} healthy {ends[0]:45} sick {ends[1]}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
