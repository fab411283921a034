"""Published files -> rows: Parquet, JSON lines, JSON in any of its shapes, compressed or not."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from full_scale.data.layouts import QUESTIONS
from full_scale.errors import UnusableError
from m2po_lab.logs import jsontext
from m2po_lab.logs.arrow import parquet
from m2po_lab.logs.find import find
from m2po_lab.logs.reader import Notes, ReadOptions
from m2po_lab.logs.source import Source

SUFFIXES = (".parquet", ".jsonl", ".ndjson", ".json")
NOT_ROWS = ("dataset_infos", "dataset_info", "dataset_dict", "state", "manifest", "config")
"""Names of JSON files beside data that hold no rows."""
CONTAINERS = ("rows", "data", "examples", "instances", "train", "test", "validation")
"""Names under which a JSON object holds the list of its rows."""

_SPLITS = re.compile(r"(?:^|[^a-z])(train|test|validation|valid|dev)(?=[^a-z]|$)", re.IGNORECASE)


def sources(path: str, split: str | None = None) -> list[Source]:
    """Files of a set below a path.

    Args:
        path: file, folder, glob or address.
        split: which split to read where files are named after splits; None reads all.

    Raises:
        UnusableError: no file of a kind that can be read.
        UnreadableLogError: no such path.
    """
    found = find(path)
    usable = [each for each in found if _holds_rows(each)]
    chosen = usable if len(found) == 1 else [each for each in usable if _is_of(each, split)]
    if not chosen:
        kinds = ", ".join(SUFFIXES)
        of = "" if split is None else f" of the split {split}"
        raise UnusableError(path, f"no file with rows{of}", f"name one of {kinds}")
    return chosen


def _holds_rows(source: Source) -> bool:
    return source.name.lower().endswith(SUFFIXES) and source.stem.lower() not in NOT_ROWS


def _is_of(source: Source, split: str | None) -> bool:
    """Whether a file is of a split; one whose name says nothing is of all."""
    inside = source.path.removeprefix(source.root)
    named = {found.lower() for found in _SPLITS.findall(str(PurePosixPath(inside)))}
    return split is None or not named or split in named


def rows(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place, row) of a file.

    Raises:
        UnusableError: not what its name says, or no rows in it.
    """
    with parquet(source) as file:
        if file is not None:
            number = 0
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield f"{source.name}: row {number}", row
            return
    if source.name.endswith(".parquet"):
        raise UnusableError(source.address, "no complete Parquet file", "download it again")
    yield from _json(source)


def _json(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    listed = _listed(jsontext.whole(source))
    if listed is not None:
        for number, row in enumerate(listed, 1):
            inner = row.get("row")  # as the hub's viewer gives them
            yield f"{source.name}: row {number}", inner if isinstance(inner, dict) else row
        return
    notes = Notes()
    for line, row in jsontext.objects(source, ReadOptions(), notes):
        yield f"{source.name}: line {line}", row
    if notes.bad_rows:
        raise UnusableError(source.address, "its last line is cut short", "download it again")


def _listed(value: Any) -> list[dict[str, Any]] | None:
    """Rows of one JSON value: a list, a list under a name, or a list a column; None if it is none.

    An object of another kind is the only line of a file of JSON lines.
    """
    if isinstance(value, dict):
        for name in CONTAINERS:
            if isinstance(value.get(name), list):
                return _listed(value[name])
        asked = [entry for name, entry in value.items() if name.lower() in QUESTIONS]
        if not (asked and isinstance(asked[0], list) and _texts(asked[0])):
            return None
        lists = {name: entry for name, entry in value.items() if isinstance(entry, list)}
        return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else None


def _texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def sha256(path: Path) -> str:
    """Hash of a file, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def source_hash(source: Source) -> str:
    """Hash of the decompressed content of a file anywhere."""
    digest = hashlib.sha256()
    with source.open() as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
