"""Trinity-RFT experiences: `TRXP` blobs in a file or in the SQL buffer, and older pickles.

A blob is b"TRXP", a version byte, two little-endian u64 lengths, pickled metadata, safetensors
(trinity/common/experience.py); the SQL buffer keeps it as `experience_bytes` (buffer/schema).
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs import values
from m2po_lab.logs.batching import NumberedRow, batches
from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.inert import Inert
from m2po_lab.logs.reader import Notes, OneByOne, ReadOptions
from m2po_lab.logs.safetensors import unpack
from m2po_lab.logs.source import Source
from m2po_lab.logs.sqlite import is_sqlite, opened, table_with
from m2po_lab.logs.unpickle import load_pickle_bytes

_MAGIC = b"TRXP"
_HEADER = struct.Struct("<4sBQQ")
_VERSION = 1
_BLOB = "experience_bytes"
_OWN = {"token_ids": ("response_tokens",), "finish_reason": ("truncate_status",)}
_MISSING = (
    "Trinity stores the explorer's logprobs only; the trainer recomputes old_logprobs: save them "
    "in the trainer beside the experiences"
)


class Trinity(OneByOne):
    """Sampled log-probs and versions; the trainer's log-probs are not stored."""

    name = "trinity"

    def sniff(self, source: Source) -> bool:
        """A TRXP blob, or an SQLite table of experiences."""
        if source.head.startswith(_MAGIC):
            return True
        return is_sqlite(source) and bool(table_with(source, _BLOB))

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Read one file."""
        (source,) = sources
        blobs = _sql_blobs(source) if is_sqlite(source) else _file_blobs(source)
        rows = _rows(blobs, source, notes)
        yield from batches(rows, source, options, notes, _OWN, _MISSING)


def _sql_blobs(source: Source) -> Iterator[bytes]:
    """Blobs of every table of experiences."""
    with opened(source) as database:
        for table in table_with(source, _BLOB):
            query = f'SELECT "{_BLOB}" FROM "{table}" ORDER BY rowid'
            for (blob,) in database.execute(query):
                if isinstance(blob, bytes):
                    yield blob


def _file_blobs(source: Source) -> Iterator[bytes]:
    """Blobs that stand one behind the other in a file."""
    with source.open() as stream:
        while header := stream.read(_HEADER.size):
            if len(header) < _HEADER.size or not header.startswith(_MAGIC):
                yield header
                return
            _, _, meta, tensors = _HEADER.unpack(header)
            yield header + stream.read(meta + tensors)


def _rows(blobs: Iterator[bytes], source: Source, notes: Notes) -> Iterator[NumberedRow]:
    """Rows of all blobs; a blob cut short counts as a bad row."""
    number = 0
    for blob in blobs:
        try:
            items = _experiences(blob, source.address)
        except (ValueError, struct.error) as error:
            if isinstance(error, UnreadableLogError) and "asks for" in str(error):
                raise
            notes.bad_rows += 1
            notes.remark(f"{source.address}: an experience is cut short or broken")
            continue
        for item in items:
            number += 1
            yield number, _row(item)


def _experiences(blob: bytes, address: str) -> list[dict[str, Any]]:
    """Experiences of one blob as dicts."""
    if not blob.startswith(_MAGIC):
        held = load_pickle_bytes(blob, address)
        return [held.fields] if isinstance(held, Inert) and held.fields else []
    _, version, meta, tensors = _HEADER.unpack_from(blob)
    if version > _VERSION:
        raise UnreadableLogError(address, f"TRXP version {version}", "upgrade m2po-lab")
    if len(blob) < _HEADER.size + meta + tensors:
        raise ValueError("blob ends early")
    start = _HEADER.size
    metadata = load_pickle_bytes(blob[start : start + meta], address)
    arrays = unpack(blob[start + meta : start + meta + tensors])
    items = [dict(item) for item in metadata["items"]]
    for name, array in arrays.items():
        index, _, field = name.partition(":")
        if index.isdecimal() and int(index) < len(items):
            items[int(index)][field] = array
    return items


def _row(item: Mapping[str, Any]) -> dict[str, Any]:
    """One experience under common names."""
    row = {k: item[k] for k in ("logprobs", "advantages", "action_mask", "reward") if k in item}
    tokens: Sequence[int] | None = item.get("tokens")
    prompt = values.integer(item.get("prompt_length"))
    if values.is_sequence(tokens) and 0 <= prompt <= len(tokens):
        row |= {"prompt_ids": tokens[:prompt], "response_tokens": tokens[prompt:]}
    eid: Any = item.get("eid")
    eid = eid.fields if isinstance(eid, Inert) else eid
    if isinstance(eid, dict):
        row["group_id"] = f"{eid.get('batch')}/{eid.get('task')}"
        row["row_id"] = "/".join(
            str(eid.get(k)) for k in ("batch", "task", "run", "step", "suffix")
        )
        row["step"] = eid.get("batch")
    info = item.get("info")
    if isinstance(info, dict):
        row["version"] = info.get("model_version")
    row |= {"prompt": item.get("prompt_text"), "response": item.get("response_text")}
    row["truncate_status"] = item.get("truncate_status")
    return row
