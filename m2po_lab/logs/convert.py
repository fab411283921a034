"""convert: any readable log -> a native Parquet dataset, and what that could not carry."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from m2po_lab.core.batch import LOGP_FIELDS, TokenBatch
from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.merging import row_lengths
from m2po_lab.logs.open import Log, open_log
from m2po_lab.logs.rows import UNKNOWN, Rows
from m2po_lab.logs.schema import ROW_COLUMNS, TOKEN_COLUMNS
from m2po_lab.logs.writer import LogWriter, list_array

FILE_TOKENS = 1 << 20
_INT32 = 2**31
_ROW_INTEGERS = ("step", "mini_batch", "train_version")


@dataclass
class Conversion:
    """What a conversion did.

    Args:
        log: the log that was read, with its counts.
        files: files written.
        not_carried: what the log holds and the native format does not, in sentences.
    """

    log: Log
    files: list[Path] = field(default_factory=list)
    not_carried: list[str] = field(default_factory=list)

    def leave_out(self, text: str) -> None:
        """Note once that something was not carried."""
        if text not in self.not_carried:
            self.not_carried.append(text)


def convert(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
) -> Conversion:
    """Write a log as a native Parquet dataset, about a million tokens a file.

    Args:
        path: log to read, as for `open_log`.
        out: directory to write to; made if it does not exist.
        format: reader's name, or "auto".
        columns: role -> column name.
        skip_bad_rows: count malformed rows instead of stopping.

    Returns:
        The files, the counts, and what could not be carried.

    Raises:
        UnreadableLogError: the log cannot be read, or `out` holds Parquet files already.
    """
    log = open_log(
        path, format=format, columns=columns, skip_bad_rows=skip_bad_rows, batch_tokens=FILE_TOKENS
    )
    directory = Path(out)
    if directory.is_dir() and any(directory.glob("*.parquet")):
        raise UnreadableLogError(
            str(out), "holds Parquet files already", "choose an empty directory for --out"
        )
    writer, done = LogWriter(directory), Conversion(log)
    for number, batch in enumerate(log):
        columns_of_file = native_columns(batch, done)
        done.files.append(writer.write(f"part-{number:05d}", row_lengths(batch), **columns_of_file))
    if log.metrics:
        done.leave_out(f"{len(log.metrics)} metric series")
    return done


def native_columns(batch: TokenBatch, done: Conversion) -> dict[str, Any]:
    """Columns of a native file for one ragged batch."""
    rows: Rows = batch.rows
    lengths = row_lengths(batch)
    columns: dict[str, Any] = {}
    for name in TOKEN_COLUMNS:
        values = _token_values(batch, rows, name)
        if values is not None:
            columns[name] = _list(name, values, lengths, rows, done)
    for name in ROW_COLUMNS:
        value = getattr(rows, name)
        if value is not None:
            columns[name] = _int32(name, value, done) if name in _ROW_INTEGERS else value
    _note_losses(batch, rows, done)
    return columns


def _token_values(batch: TokenBatch, rows: Rows, name: str) -> NDArray[Any] | None:
    """Flat values of a native token column; None if the log does not have it."""
    if name == "loss_mask":
        return np.asarray(batch.keep) if rows.has_mask else None
    if name == "token_ids":
        if (
            rows.token_ids is None and rows.misfits
        ):  # unknown ids still say how many tokens there are
            return np.full(batch.shape, -1, dtype=np.int64)
        return rows.token_ids
    value = getattr(batch, name)
    return None if value is None else np.asarray(value)


def _list(
    name: str, values: NDArray[Any], lengths: NDArray[np.int64], rows: Rows, done: Conversion
) -> pa.Array:
    """A list column with nulls, absent rows, and the entries of rows that do not fit."""
    field_name = "keep" if name == "loss_mask" else name
    null = rows.nulls.get(field_name)
    absent = rows.absent.get(field_name)
    misfits = rows.misfits.get(field_name, {})
    if misfits:
        parts = np.split(values, np.cumsum(lengths)[:-1])
        flags = None if null is None else np.split(null, np.cumsum(lengths)[:-1])
        for row, entries in misfits.items():
            parts[row] = np.asarray(entries)
            if flags is not None:
                flags[row] = np.zeros(len(entries), np.bool_)
        lengths = np.array([len(part) for part in parts], dtype=np.int64)
        values = np.concatenate(parts)
        null = None if flags is None else np.concatenate(flags)
    if name in ("token_ids", "version"):
        values = np.where(values < 0, UNKNOWN, values)
        values = _int32(name, values, done)
        null = values == UNKNOWN
        values = np.where(null, 0, values)
    elif values.dtype == np.float64 and _needs_float64(values):
        done.leave_out("digits beyond float32, in which the native format holds log-probs")
    return list_array(values, lengths, TOKEN_COLUMNS[name], null, absent)


def _needs_float64(values: NDArray[np.float64]) -> bool:
    """Whether float32 would change a finite value."""
    finite = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        return bool((finite.astype(np.float32) != finite).any())


def _int32(name: str, values: NDArray[Any], done: Conversion) -> NDArray[Any]:
    """Integers that fit the schema; others become unknown, and that is noted."""
    wide = (values != UNKNOWN) & ((values >= _INT32) | (values < -_INT32))
    if wide.any():
        done.leave_out(f"{name} beyond 32 bits")
    return np.where(wide, UNKNOWN, values)


def _note_losses(batch: TokenBatch, rows: Rows, done: Conversion) -> None:
    """Note what the schema has no place for."""
    if rows.weights is not None:
        done.leave_out("importance weights (their logarithm is kept as behavior_logp)")
    if rows.retokenised is not None:
        done.leave_out("a second column of token ids")
    if rows.prompt_key is not None and rows.prompt is None:
        done.leave_out("prompt token ids")
    if rows.prompt_length is not None:
        done.leave_out("prompt lengths")
    if not batch.shape[0] and rows.response is None:
        done.leave_out("response lengths")
    if not any(getattr(batch, name) is not None for name in LOGP_FIELDS):
        done.leave_out("log-probs: the log has none")
