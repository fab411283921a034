"""Generic JSON lines, and JSON arrays of rows: any trainer's names, see `columns.SYNONYMS`."""

from collections.abc import Iterator, Mapping
from typing import Any

from m2po_lab.core.batch import LOGP_FIELDS, TokenBatch
from m2po_lab.logs import jsontext, values
from m2po_lab.logs.batching import batches
from m2po_lab.logs.columns import SYNONYMS
from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.packed import unpacked
from m2po_lab.logs.reader import Notes, OneByOne, ReadOptions
from m2po_lab.logs.readers.base import columnar
from m2po_lab.logs.source import Source

_RECOGNISED = {
    name
    for role in (
        "behavior_logp",
        "proximal_logp",
        "current_logp",
        "weights",
        "token_ids",
        "response",
    )
    for name in SYNONYMS[role]
}
MISSING_FLAG = (
    "log the sampler's and the trainer's log-probs of every token, for example as "
    "rollout_log_probs and old_log_probs"
)


def is_rollout(row: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a row of a rollout log: it has a response or log-probs."""
    return not _RECOGNISED.isdisjoint(row)


class JsonLines(OneByOne):
    """One JSON object a line, or one array of objects, under the names of any trainer."""

    name = "jsonl"

    def sniff(self, source: Source) -> bool:
        """A JSON object with a response or log-probs."""
        if jsontext.looks_like_json(source) == b"[":
            rows = jsontext.whole(source)
            first = rows[0] if isinstance(rows, list) and rows else None
            return isinstance(first, dict) and is_rollout(first)
        return is_rollout(jsontext.first_object(source))

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Read the rows of one file."""
        (source,) = sources
        if jsontext.looks_like_json(source) == b"[":
            rows = _array(source)
        else:
            rows = jsontext.objects(source, options, notes)
        rows = (
            (line, row)
            for line, item in rows
            for one in _unfolded(item)
            for row in unpacked(one, notes)
        )
        yield from batches(rows, source, options, notes, missing_flag=MISSING_FLAG)


def _unfolded(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The object itself, or its rows where a log-prob column holds one list a row."""
    for role in LOGP_FIELDS:
        for name in SYNONYMS[role]:
            column: Any = item.get(name)
            if values.is_column_of_rows(column):
                yield from columnar(item, len(column))
                return
    yield item


def _array(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbered objects of a file that is one JSON array."""
    value = jsontext.whole(source)
    if not isinstance(value, list):
        raise UnreadableLogError(source.address, "no complete JSON array", "is it still written?")
    for number, row in enumerate(value, 1):
        if isinstance(row, dict):
            yield number, row
