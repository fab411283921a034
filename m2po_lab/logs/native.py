"""The native Parquet log, read column by column; float32 stays float32."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs import arrow
from m2po_lab.logs.columns import Columns
from m2po_lab.logs.errors import DamagedLogError, UnreadableLogError
from m2po_lab.logs.facts import text_hashes
from m2po_lab.logs.hashing import bytes_hash, row_hashes
from m2po_lab.logs.reader import Notes, OneByOne, ReadOptions
from m2po_lab.logs.rows import UNKNOWN, Rows
from m2po_lab.logs.schema import SCHEMA_KEY, SCHEMA_NAME, SCHEMA_VERSION, TOKEN_COLUMNS
from m2po_lab.logs.source import Source

MISSING_FLAG = "write proximal_logp or current_logp beside behavior_logp (m2po_lab.logs.writer)"
_LENGTH_FROM = (
    "token_ids",
    "loss_mask",
    "behavior_logp",
    "proximal_logp",
    "current_logp",
    "entropy",
    "version",
    "advantage",
)
_FLOATS = ("behavior_logp", "proximal_logp", "current_logp", "entropy", "advantage")
_TEXTS = ("row_id", "group_id", "finish_reason", "prompt", "response")
_INTEGERS = ("step", "mini_batch", "train_version")


class Native(OneByOne):
    """Files of `LogWriter`."""

    name = "native"

    def sniff(self, source: Source) -> bool:
        """Parquet whose metadata carry `m2po_lab.schema`."""
        schema = arrow.parquet_schema(source)
        return schema is not None and SCHEMA_KEY in (schema.metadata or {})

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Read one file."""
        (source,) = sources
        with arrow.parquet(source) as file:
            if file is None:
                raise DamagedLogError(source.address, "no complete Parquet file", "copy it again")
            _check_version(source, file)
            chosen = _chosen(file.schema_arrow.names, source, options, notes)
            step = None if source.step is None else source.step[0]
            for first_row, table in arrow.tables(file, options.batch_tokens):
                batch = _batch(table, chosen, source, first_row, step)
                if not batch.available_ratios():
                    notes.missing_flag = MISSING_FLAG
                yield from arrow.split(batch, options.batch_tokens)


def _chosen(names: list[str], source: Source, options: ReadOptions, notes: Notes) -> dict[str, str]:
    """Native column -> column of the file, the user's choice above the names themselves."""
    columns = Columns(options.columns)
    columns.demand(names, source.address)
    canonical = columns.canonical(dict.fromkeys(names, True))
    notes.columns.update(columns.report())
    return {"loss_mask" if role == "keep" else role: columns.used[role] for role in canonical}


def _check_version(source: Source, file: pq.ParquetFile) -> None:
    """Refuse a schema newer than this package."""
    value = (file.schema_arrow.metadata or {}).get(SCHEMA_KEY, b"").decode("utf-8", "replace")
    known = re.fullmatch(rf"{SCHEMA_NAME}/(\d+)", value)
    if value and (known is None or int(known[1]) > SCHEMA_VERSION):
        raise UnreadableLogError(
            source.address,
            f"schema {value!r}, this version reads {SCHEMA_NAME}/{SCHEMA_VERSION}",
            "upgrade with pip install --upgrade m2po-lab",
        )


def _batch(
    table: pa.RecordBatch, chosen: dict[str, str], source: Source, first_row: int, step: int | None
) -> TokenBatch:
    """One arrow batch as a ragged TokenBatch."""
    columns = {role: table.column(name) for role, name in chosen.items()}
    lists = {r: c for r, c in columns.items() if r in TOKEN_COLUMNS and arrow.is_list(c.type)}
    lengths = np.zeros(table.num_rows, np.int64)
    unset = np.ones(table.num_rows, np.bool_)
    for role in _LENGTH_FROM:
        if role in lists:
            given = lists[role].is_valid().to_numpy(zero_copy_only=False)
            own = pc.list_value_length(lists[role]).fill_null(0).to_numpy(zero_copy_only=False)
            lengths = np.where(unset & given, own, lengths)
            unset &= ~given
    laid = {role: arrow.lay_out(column, lengths, _fill(role)) for role, column in lists.items()}
    laid = {role: column for role, column in laid.items() if not column.absent.all()}
    arrays: dict[str, NDArray[Any]] = {
        role: laid[role].values for role in (*_FLOATS, "version") if role in laid
    }
    if "loss_mask" in laid:
        arrays["keep"] = laid["loss_mask"].values
    if "advantage" in columns and "advantage" not in lists:
        per_row = columns["advantage"].cast(pa.float32()).to_numpy(zero_copy_only=False)
        arrays["advantage"] = np.repeat(per_row, lengths)
    return TokenBatch(
        **arrays, lengths=lengths, rows=_rows(columns, laid, lengths, source, first_row, step)
    )


def _fill(role: str) -> Any:
    """Value of tokens that a column does not give."""
    return {"loss_mask": True, "version": -1, "token_ids": -1}.get(role, np.nan)


def _integers(column: pa.Array | None) -> NDArray[np.int64] | None:
    """A row column of integers; None if absent or all null."""
    if column is None or column.null_count == len(column):
        return None
    filled = column.cast(pa.int64()).fill_null(UNKNOWN)
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _texts(column: pa.Array | None) -> list[str | None] | None:
    """A row column of text; None if absent or all null."""
    if column is None or column.null_count == len(column):
        return None
    return [None if value is None else str(value) for value in column.to_pylist()]


def _response_lengths(lengths: NDArray[np.int64], texts: Any) -> NDArray[np.int64]:
    """Tokens of each response, or characters if the file has no token column."""
    if lengths.any() or texts is None:
        return lengths
    return np.array([UNKNOWN if text is None else len(text) for text in texts], dtype=np.int64)


def _rows(
    columns: dict[str, pa.Array],
    laid: dict[str, arrow.Laid],
    lengths: NDArray[np.int64],
    source: Source,
    first_row: int,
    file_step: int | None,
) -> Rows:
    """The Rows of one arrow batch."""
    n = len(lengths)
    texts: dict[str, Any] = {name: _texts(columns.get(name)) for name in _TEXTS}
    numbers: dict[str, Any] = {name: _integers(columns.get(name)) for name in _INTEGERS}
    reward = columns.get("reward")
    prompts = texts["prompt"]
    fallback = numbers["train_version"] if file_step is None else np.full(n, file_step, np.int64)
    if numbers["step"] is None:
        numbers["step"] = fallback
    elif fallback is not None:
        numbers["step"] = np.where(numbers["step"] == UNKNOWN, fallback, numbers["step"])
    fields: dict[str, Any] = {
        "reward": None
        if reward is None or reward.null_count == n
        else reward.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False),
        "response": texts["response"],
        "prompt_key": None
        if prompts is None
        else np.array([bytes_hash((p or "").encode()) for p in prompts], dtype=np.uint64),
        "response_length": _response_lengths(lengths, texts["response"]),
        "length_unit": "tokens" if laid or texts["response"] is None else "characters",
    }
    hashed = {
        "keep" if role == "loss_mask" else role: column.values
        for role, column in sorted(laid.items())
        if role != "version"
    }
    unaligned = np.zeros(n, np.bool_)
    for role, column in laid.items():
        if role not in ("entropy", "advantage", "version"):
            unaligned |= column.difference != 0
    return Rows(
        source=[source.address] * n,
        line=np.arange(first_row + 1, first_row + n + 1),
        token_ids=laid["token_ids"].values if "token_ids" in laid else None,
        nulls={_named(r): c.null for r, c in laid.items() if c.null is not None},
        absent={_named(r): c.absent for r, c in laid.items() if c.absent.any()},
        length_difference={_named(r): c.difference for r, c in laid.items() if c.difference.any()},
        misfits={_named(r): c.misfits for r, c in laid.items() if c.misfits},
        unaligned=unaligned,
        content=row_hashes(hashed, lengths) ^ text_hashes(fields),
        has_mask="loss_mask" in laid,
        **fields,
        **{name: texts[name] for name in _TEXTS if name != "response"},
        **numbers,
    )


def _named(role: str) -> str:
    """Name of a native token column among the fields of TokenBatch."""
    return "keep" if role == "loss_mask" else role
