"""What the framework readers share."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs import jsontext, values
from m2po_lab.logs.batching import NumberedRow, batches
from m2po_lab.logs.reader import Notes, OneByOne, ReadOptions
from m2po_lab.logs.source import Source

Columns = Mapping[str, tuple[str, ...]]


class JsonFormat(OneByOne):
    """A framework that writes JSON objects, one a line; subclasses say which keys and which rows."""

    name = ""
    keys: frozenset[str] = frozenset()
    """Keys that together mark the format."""
    own: Columns = {}
    """Canonical field -> this framework's names."""
    missing_flag: str | None = None
    """How to make the framework log what is missing."""

    def sniff(self, source: Source) -> bool:
        """The first object has all the keys of the format."""
        return self.keys <= jsontext.first_object(source).keys()

    def rows(self, line: int, item: dict[str, Any]) -> Iterator[NumberedRow]:
        """Rows that one object holds."""
        yield line, item

    def file_step(self, source: Source) -> tuple[int, str] | None:
        """Step of the file where its name does not say it the usual way."""
        return None

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Read one file."""
        (source,) = sources
        rows = (
            row
            for line, item in jsontext.objects(source, options, notes)
            for row in self.rows(line, item)
        )
        yield from batches(
            rows, source, options, notes, self.own, self.missing_flag, self.file_step(source)
        )


def cut(row: Mapping[str, Any], width: int, start: int, stop: int) -> dict[str, Any]:
    """The row with every list of `width` entries cut to those from start to stop."""
    return {
        key: value[start:stop] if values.is_sequence(value) and len(value) == width else value
        for key, value in row.items()
    }


def without_prompt(row: Mapping[str, Any], mask: str, tokens: str) -> dict[str, Any]:
    """A row whose lists cover prompt and response, cut to the response.

    The response starts at the first kept token; a row without one stays whole, all masked. The
    prompt's ids go under `prompt_ids`.
    """
    keep = values.mask(row[mask])
    start = int(np.argmax(keep)) if keep.any() else 0
    response = cut(row, len(keep), start, len(keep))
    ids = row.get(tokens)
    if start and values.is_sequence(ids) and len(ids) == len(keep):
        response["prompt_ids"] = ids[:start]
    return response


def columnar(item: Mapping[str, Any], count: int) -> Iterator[dict[str, Any]]:
    """Rows of an object that holds lists, one entry a row; other values belong to every row."""
    for i in range(count):
        yield {
            key: value[i] if values.is_sequence(value) and len(value) == count else value
            for key, value in item.items()
        }
