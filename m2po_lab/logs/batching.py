"""Rows of dicts -> batches of bounded size."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.assemble import assemble, token_count
from m2po_lab.logs.columns import Columns
from m2po_lab.logs.facts import OTHER_IDS
from m2po_lab.logs.other_ids import other_ids
from m2po_lab.logs.reader import BATCH_ROWS, Notes, ReadOptions
from m2po_lab.logs.source import Source

NumberedRow = tuple[int, Mapping[str, Any]]
"""Line (or row number) in the file, and the row under the framework's own names."""


def batches(
    rows: Iterable[NumberedRow],
    source: Source,
    options: ReadOptions,
    notes: Notes,
    own: Mapping[str, tuple[str, ...]] | None = None,
    missing_flag: str | None = None,
    file_step: tuple[int, str] | None = None,
) -> Iterator[TokenBatch]:
    """Translate a framework's rows to canonical names and assemble them batch by batch.

    A batch holds about `options.batch_tokens` tokens; a longer row makes a batch of its own.

    Args:
        rows: numbered rows under the framework's names.
        source: file they come from.
        options: overrides of columns, size of a batch.
        notes: gets what was taken for what.
        own: canonical field -> names in this framework, in place of the general synonyms.
        missing_flag: how to make the framework log what a batch without any ratio lacks.
        file_step: step of the file and where it stands, in place of what its name says.

    Raises:
        UnreadableLogError: a column named by the user is in none of the rows of the first batch.
    """
    columns = Columns(options.columns, own or {})
    found = file_step or source.step
    for index, (lines, raws) in enumerate(_groups(rows, columns, options.batch_tokens)):
        if index == 0:
            columns.demand({key for raw, _ in raws for key in raw}, source.address)
        step = None if found is None else found[0]
        batch = assemble([row for _, row in raws], source.address, lines, step)
        if not batch.available_ratios():
            notes.missing_flag = notes.missing_flag or missing_flag
        yield batch
        if found and "step" not in columns.used:
            columns.used["step"] = found[1]
        notes.columns.update(columns.report())


def _groups(
    rows: Iterable[NumberedRow], columns: Columns, batch_tokens: int
) -> Iterator[tuple[list[int], list[tuple[Mapping[str, Any], dict[str, Any]]]]]:
    """Collect rows until the next one would overfill the batch."""
    lines: list[int] = []
    group: list[tuple[Mapping[str, Any], dict[str, Any]]] = []
    size = 0
    for line, raw in rows:
        row = columns.canonical(raw)
        if others := other_ids(raw, row, columns.used):
            row[OTHER_IDS] = others
        n = token_count(row)
        if group and (size + n > batch_tokens or len(group) >= BATCH_ROWS):
            yield lines, group
            lines, group, size = [], [], 0
        lines.append(line)
        group.append((raw, row))
        size += n
    if group:
        yield lines, group
