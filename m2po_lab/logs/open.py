"""open_log: any path -> a Log, which yields TokenBatches and says what it has read."""

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.detect import Unit, units_of
from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.find import find, natural
from m2po_lab.logs.guard import guarded
from m2po_lab.logs.merging import coalesce
from m2po_lab.logs.metrics import MetricSeries
from m2po_lab.logs.reader import BATCH_TOKENS, Notes, ReadOptions
from m2po_lab.logs.source import Source


@dataclass
class LogInput:
    """What one format contributed to a log; grows while the log is read.

    Args:
        path: what the user named.
        format: reader's name.
        files: files read.
        rows: rows read.
        tokens: tokens logged, masked ones included.
        columns: role -> column name taken for it.
        missing_flag: how to make this framework log what is missing; None if nothing is.
        remarks: what else was met, in sentences.
    """

    path: str
    format: str
    files: int = 0
    rows: int = 0
    tokens: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    missing_flag: str | None = None
    remarks: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The entry of the report's `inputs`."""
        names = ("path", "format", "files", "rows", "tokens", "columns")
        return {name: getattr(self, name) for name in names}


class Log(Iterator[TokenBatch]):
    """A rollout log: iterate over it once for ragged batches; the attributes fill up on the way.

    Small batches of neighbouring files are joined.

    Attributes:
        inputs: one entry a path and format.
        bad_rows: rows that could not be read.
        partial: True until the last batch has been taken.
        metrics: series of metric files among the paths.
    """

    def __init__(
        self, units: Sequence[Unit], options: ReadOptions, path: str, *, is_part: bool = False
    ) -> None:
        """Keep the plan; nothing is read yet. A part may turn out to hold no row."""
        self.units = tuple(units)
        self.options = options
        self.path = path
        self.is_part = is_part
        self.inputs: list[LogInput] = []
        self.bad_rows = 0
        self.partial = True
        self.metrics: list[MetricSeries] = []
        self._running: Iterator[TokenBatch] | None = None

    def __next__(self) -> TokenBatch:
        """Read the next batch.

        Raises:
            UnreadableLogError: malformed content, an absent column, or no readable row in all.
        """
        if self._running is None:
            self._running = self._batches()
        return next(self._running)

    def close(self) -> None:
        """Stop reading; what was read stays in the attributes, `partial` if it was not all."""
        if isinstance(self._running, Generator):
            self._running.close()

    def _batches(self) -> Iterator[TokenBatch]:
        """Read every unit, then check that something was there."""
        yield from coalesce(self._each_unit(), self.options.batch_tokens)
        is_empty = not any(entry.rows for entry in self.inputs) and not self.metrics
        if is_empty and not self.is_part:
            raise self.nothing_read()
        self.partial = False

    def _each_unit(self) -> Iterator[TokenBatch]:
        """Batches as the readers give them, counted."""
        for unit in self.units:
            entry, notes = self._entry(unit), Notes()
            entry.files += len(unit.sources)
            notes.remarks.extend(unit.remarks)
            if not unit.sources:
                self._take(entry, notes)
                continue
            try:
                for batch in guarded(unit, self.options, notes):
                    entry.rows += batch.n_rows
                    entry.tokens += batch.shape[0]
                    yield batch
            finally:
                self._take(entry, notes)

    def _take(self, entry: LogInput, notes: Notes) -> None:
        """Add what a reader noted."""
        entry.columns.update(notes.columns)
        entry.missing_flag = entry.missing_flag or notes.missing_flag
        entry.remarks.extend(r for r in notes.remarks if r not in entry.remarks)
        self.bad_rows += notes.bad_rows
        for series in notes.metrics:
            self._add_series(series)

    def _add_series(self, series: MetricSeries) -> None:
        """Keep a series, at the end of the one of the same name if another file began it."""
        for i, kept in enumerate(self.metrics):
            if (kept.name, kept.framework) == (series.name, series.framework):
                self.metrics[i] = kept.followed_by(series)
                return
        self.metrics.append(series)

    def _entry(self, unit: Unit) -> LogInput:
        """The entry of the unit's path and format."""
        for entry in self.inputs:
            if (entry.path, entry.format) == (unit.path, unit.format):
                return entry
        self.inputs.append(LogInput(unit.path, unit.format))
        return self.inputs[-1]

    def nothing_read(self) -> UnreadableLogError:
        """The error of a log without a readable row."""
        reasons = [remark for entry in self.inputs for remark in entry.remarks][:2]
        if self.bad_rows and not reasons:
            reasons = [f"{self.bad_rows} malformed"]
        said = f" ({'; '.join(reasons)})" if reasons else ""
        return UnreadableLogError(
            self.path, f"no readable row{said}", "is the run still writing it?"
        )

    def parts(self, most: int | None = None) -> list["Log"]:
        """Logs that together hold this one's files, to be read in other processes.

        A part without a readable row is no error; whether the whole has one is for the caller to
        check (`nothing_read`). Files come in their natural order, however the paths were named:
        the order of sums then depends on the files alone.

        Args:
            most: at most this many parts, of neighbouring files; None makes one a unit.
        """
        size = 1 if most is None else max(1, -(-len(self.units) // most))
        units = sorted(self.units, key=_place)
        groups = [units[i : i + size] for i in range(0, len(units), size)]
        return [Log(group, self.options, self.path, is_part=True) for group in groups]

    @property
    def missing_flag(self) -> str | None:
        """How to make the framework log what is missing, from the first input that says so."""
        return next((e.missing_flag for e in self.inputs if e.missing_flag), None)


def open_log(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
    batch_tokens: int = BATCH_TOKENS,
) -> Log:
    """Open the log of a run: files, directories, globs, fsspec addresses, or several of them.

    Args:
        path: where it lies.
        format: name of a reader, or "auto" to choose by content.
        columns: role -> column name, above the reader's own choice.
        skip_bad_rows: count malformed rows in the middle of a file instead of stopping there.
        batch_tokens: tokens a batch aims at.

    Returns:
        An iterable of ragged TokenBatches that says, while it is read, what it has met.

    Raises:
        UnreadableLogError: no such path, unknown format; while iterating: absent column, malformed
            row in the middle of a file, no readable row.
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    options = ReadOptions(format, dict(columns or {}), skip_bad_rows, batch_tokens)
    if not paths:
        raise UnreadableLogError("log", "no path given", "name a file, directory, glob or address")
    shown = ", ".join(os.fspath(p) for p in paths)
    units: list[Unit] = []
    seen: set[Source] = set()
    for p in paths:
        sources = [source for source in find(p) if source not in seen]
        seen.update(sources)
        units += units_of(os.fspath(p), sources, options) if sources else []
    return Log(units, options, shown)


def _place(unit: Unit) -> list[tuple[int, int | str]]:
    """Where a unit stands in the natural order of all files, whatever the order of the paths."""
    return natural(unit.sources[0].path if unit.sources else unit.path)
