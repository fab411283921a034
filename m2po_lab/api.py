"""`m2po_lab.analyze`: a path in, an Analysis with findings out; the command is this, spoken."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from m2po_lab.analysis import Analysis as Scan
from m2po_lab.analysis import Options
from m2po_lab.engines import ENGINES, Growing, Stop, Watch, unseen
from m2po_lab.findings import Finding, evaluate
from m2po_lab.findings.thresholds import resolve
from m2po_lab.integrity import BatchIntegrity
from m2po_lab.logs import UnreadableLogError, open_log
from m2po_lab.logs.metrics import MetricSeries
from m2po_lab.logs.open import Log

if TYPE_CHECKING:
    from m2po_lab.report.notebook import Plots

Where = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Analysis:
    """What a log says: statistics, what was left out, and findings.

    Attributes:
        scan: mergeable sums and histograms.
        thresholds: changes to the thresholds of findings, by name.
        ignore: ids of findings to leave out.
    """

    scan: Scan
    thresholds: Mapping[str, float]
    ignore: tuple[str, ...] = ()

    @cached_property
    def findings(self) -> list[Finding]:
        """Findings that fired, most severe first."""
        scan = self.scan
        known = _Known(scan.options, scan.integrity, scan.metrics, self._statistics)
        return evaluate(known, thresholds=self.thresholds, ignore=self.ignore)

    @cached_property
    def _statistics(self) -> dict[str, Any]:
        """The report without findings; finished once, for it is read twice."""
        return self.scan.to_dict()

    def merge(self, other: "Analysis") -> "Analysis":
        """Return the analysis of both logs, as if they had been read together.

        Raises:
            ValueError: the other one was made with other options.
        """
        return replace(self, scan=self.scan.merge(other.scan))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values (`m2po-lab/report/1`)."""
        from m2po_lab.report.curves import curves

        report = dict(self._statistics)
        findings = [finding.to_dict() for finding in self.findings]
        head = {"schema": report.pop("schema"), "version": _version()}
        return {**head, **report, "findings": findings, "curves": curves(self.scan)}

    @property
    def plot(self) -> "Plots":
        """The figures of the report, each on axes of your own: `analysis.plot.by_lag(ax)`."""
        from m2po_lab.report.notebook import Plots

        return Plots(self.to_dict())

    def _repr_html_(self) -> str:
        """The primary ratio and the findings as tables, for a notebook."""
        from m2po_lab.report.notebook import as_html

        return as_html(self.to_dict())

    def __str__(self) -> str:
        """The report as the command prints it."""
        from m2po_lab.report.terminal import render

        return render(self.to_dict())


def analyze(
    path: Where | Sequence[Where],
    *,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
    budget: float = 0.04,
    clip: float | tuple[float, float] = 0.2,
    by: Iterable[str] = ("step", "lag", "position"),
    engine: str = "local",
    thresholds: Mapping[str, float] | None = None,
    ignore: Iterable[str] = (),
    stop: Stop | None = None,
    progress: Callable[[int, int], None] = unseen,
) -> Analysis:
    """Read a rollout log and say how far off-policy it is, where, and what to look at.

    Args:
        path: file, directory, glob or fsspec address, or several of them.
        format: name of a log format, or "auto" to choose by content.
        columns: role -> column name where the log uses other names.
        skip_bad_rows: count malformed rows in the middle of a file instead of refusing the file.
        budget: M2PO's tau for the second moment of active tokens, in nats^2.
        clip: eps, or (low, high); the what-if keeps r in [1 - low, 1 + high].
        by: tables to make, out of step, lag and position.
        engine: "local", or "process" for a pool of processes over the files.
        thresholds: changes to the thresholds of findings, by name.
        ignore: ids of findings to leave out.
        stop: a switch that ends the reading early; the analysis is then partial.
        progress: told the rows and tokens of every batch.

    Raises:
        UnreadableLogError: nothing usable at the path; the message says where and what to do.
        ValueError: an option out of range.
    """
    request = _Request(
        format=format,
        columns=columns,
        skip_bad_rows=skip_bad_rows,
        budget=budget,
        clip=clip,
        by=by,
        engine=engine,
        thresholds=thresholds,
        ignore=ignore,
    )
    scan = ENGINES[engine](
        request.open(path), request.scan_options, Watch(stop or Stop(), progress)
    )
    return request.finish(scan)


def follow(
    path: Where | Sequence[Where],
    *,
    seconds: float = 2.0,
    stop: Stop | None = None,
    progress: Callable[[int, int], None] = unseen,
    **options: Any,
) -> Iterator[Analysis]:
    """Analyze a log that is still being written, again whenever a complete file is new.

    Args:
        path: as for `analyze`; a directory may be empty still.
        seconds: how long to wait between two looks.
        stop: a switch that ends it.
        progress: told the rows and tokens of every batch.
        options: those of `analyze`, but for the engine.

    Yields:
        The analysis of all that is complete; files that were scanned before are not read again.

    Raises:
        UnreadableLogError: nothing usable at the path, which is no directory.
        ValueError: an option out of range.
    """
    request = _Request(**{**options, "engine": "local"})
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    watch = Watch(stop or Stop(), progress)
    growing = Growing(lambda: request.open(paths), request.scan_options)
    while not watch.stop.requested:
        try:
            scan = growing.refresh(watch)
        except UnreadableLogError:
            if not all(Path(one).is_dir() for one in paths):
                raise
            scan = None
        if scan is not None:
            yield request.finish(scan)
        if not _waited(seconds, watch.stop):
            return


def _waited(seconds: float, stop: Stop) -> bool:
    """Wait; False if a caller's interrupt ended it."""
    stop.reading = True
    try:
        time.sleep(0 if stop.requested else seconds)
    except KeyboardInterrupt:
        if not stop.requested:
            raise
        return False
    finally:
        stop.reading = False
    return not stop.requested


@dataclass(frozen=True, kw_only=True)
class _Request:
    """The options of `analyze`, checked."""

    format: str = "auto"
    columns: Mapping[str, str] | None = None
    skip_bad_rows: bool = False
    budget: float = 0.04
    clip: float | tuple[float, float] = 0.2
    by: Iterable[str] = ("step", "lag", "position")
    engine: str = "local"
    thresholds: Mapping[str, float] | None = None
    ignore: Iterable[str] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be used before anything is read."""
        if self.engine not in ENGINES:
            raise ValueError(f"engine={self.engine!r}: choose from {', '.join(ENGINES)}")
        resolve(self.thresholds)

    @cached_property
    def scan_options(self) -> Options:
        """What to compute."""
        low, high = self.clip if isinstance(self.clip, tuple) else (self.clip, self.clip)
        return Options(budget=self.budget, clip_low=low, clip_high=high, by=tuple(self.by))

    def open(self, path: Where | Sequence[Where]) -> Log:
        """Open the log as it is now."""
        return open_log(
            path, format=self.format, columns=self.columns, skip_bad_rows=self.skip_bad_rows
        )

    def finish(self, scan: Scan) -> Analysis:
        """Add what findings need."""
        return Analysis(scan, dict(self.thresholds or {}), tuple(self.ignore))


@dataclass(frozen=True)
class _Known:
    """An analysis as findings read it, with its report at hand."""

    options: Options
    integrity: BatchIntegrity
    metrics: Sequence[MetricSeries]
    report: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The report without findings."""
        return self.report


def _version() -> str:
    """Version of the installed package; "0" in a checkout that was not installed."""
    try:
        return version("m2po-lab")
    except PackageNotFoundError:
        return "0"
