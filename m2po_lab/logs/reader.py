"""What a reader is: options in, a source to read, batches out, and notes on what was met."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.errors import UnreadableLogError as UnreadableLogError
from m2po_lab.logs.metrics import MetricSeries
from m2po_lab.logs.source import Source

BATCH_TOKENS = 65_536
BATCH_ROWS = 8_192


@dataclass(frozen=True)
class ReadOptions:
    """How to read a log.

    Args:
        format: name of a reader, or "auto" to choose by content.
        columns: role -> column name, above every reader's own choice (`--columns`).
        skip_bad_rows: count malformed rows in the middle of a file instead of stopping there.
        batch_tokens: tokens a batch aims at; a single longer row makes a batch of its own.
    """

    format: str = "auto"
    columns: Mapping[str, str] = field(default_factory=dict)
    skip_bad_rows: bool = False
    batch_tokens: int = BATCH_TOKENS


@dataclass
class Notes:
    """What was met while reading one unit of a log; filled in by its reader.

    Args:
        columns: role -> column name taken for it.
        bad_rows: rows that could not be read (malformed, truncated).
        missing_flag: how to make this framework log what is missing; None if nothing is.
        metrics: series of a metric file.
        remarks: what else the user should know (a skipped rank, a step still being written).
    """

    columns: dict[str, str] = field(default_factory=dict)
    bad_rows: int = 0
    missing_flag: str | None = None
    metrics: list[MetricSeries] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def remark(self, text: str) -> None:
        """Add a sentence once."""
        if text not in self.remarks:
            self.remarks.append(text)


class Reader(Protocol):
    """One log format. A reader holds no state: one object reads many files."""

    name: str
    """Name for `--format` and the report."""

    def sniff(self, source: Source) -> bool:
        """Tell from the content whether this reader can read the file."""

    def arrange(self, sources: Sequence[Source], notes: Notes) -> list[tuple[Source, ...]]:
        """Group files that must be read together; may leave out files that must not be read."""

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Read one group of files as ragged batches; fill in `notes` on the way."""


class OneByOne:
    """Base of the readers whose files stand each on its own."""

    def arrange(self, sources: Sequence[Source], notes: Notes) -> list[tuple[Source, ...]]:
        """Every file is a group."""
        return [(source,) for source in sources]
