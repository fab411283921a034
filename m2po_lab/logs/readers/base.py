"""What the framework readers share."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeGuard

import numpy as np

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs import jsontext, values
from m2po_lab.logs.batching import NumberedRow, batches
from m2po_lab.logs.reader import Notes, OneByOne, ReadOptions
from m2po_lab.logs.source import Source

Columns = Mapping[str, tuple[str, ...]]


class JsonFormat(OneByOne):
    """A framework that writes JSON objects, one a line; subclasses say what is in them."""

    name = ""
    keys: frozenset[str] = frozenset()
    """Keys that together mark the format."""
    own: ClassVar[Columns] = {}
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
    return {key: v[start:stop] if has_length(v, width) else v for key, v in row.items()}


def has_length(value: Any, length: int) -> TypeGuard[Any]:
    """Whether a value is a list, tuple or array of this many entries."""
    return values.is_sequence(value) and len(value) == length


def kept_part(mask: Any) -> tuple[int, int]:
    """First kept token and the one after the last; the whole if none is kept."""
    kept = np.flatnonzero(values.mask(mask))
    return (int(kept[0]), int(kept[-1]) + 1) if len(kept) else (0, len(mask))


def without_prompt(row: Mapping[str, Any], mask: str, tokens: str) -> dict[str, Any]:
    """A row whose lists cover prompt and response, cut to the response.

    The response starts at the first kept token; a row without one stays whole, all masked. The
    prompt's ids go under `prompt_ids`.
    """
    width = len(row[mask])
    start, _ = kept_part(row[mask])
    response = cut(row, width, start, width)
    ids: Any = row.get(tokens)
    if start and has_length(ids, width):
        response["prompt_ids"] = ids[:start]
    return response


def columnar(item: Mapping[str, Any], count: int) -> Iterator[dict[str, Any]]:
    """Rows of an object that holds lists, one entry a row; other values belong to every row."""
    for i in range(count):
        yield {key: value[i] if has_length(value, count) else value for key, value in item.items()}
