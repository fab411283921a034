"""Arrow columns -> flat numpy arrays, and Parquet files in pieces of bounded size."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.merging import row_lengths, take_rows
from m2po_lab.logs.reader import BATCH_ROWS
from m2po_lab.logs.source import Source

_MAGIC = b"PAR1"


def starts_as_parquet(source: Source) -> bool:
    """Whether the file begins like Parquet, complete or not."""
    return source.head.startswith(_MAGIC)


@contextmanager
def parquet(source: Source) -> Iterator[pq.ParquetFile | None]:
    """Open a Parquet file for the length of a `with`; None if it is none, or not a complete one."""
    if not starts_as_parquet(source):
        yield None
        return
    plain = source.is_local and not source.is_compressed
    with nullcontext(source.path) if plain else source.open_seekable() as place:
        try:
            file = pq.ParquetFile(place, pre_buffer=False)
        except (pa.ArrowInvalid, OSError):
            yield None
            return
        with file:
            yield file


def parquet_schema(source: Source) -> pa.Schema | None:
    """Schema of a Parquet file; None if it is none, or not a complete one."""
    with parquet(source) as file:
        return None if file is None else file.schema_arrow


def is_list(dtype: pa.DataType) -> bool:
    """List types of any offset width."""
    return bool(
        pa.types.is_list(dtype)
        or pa.types.is_large_list(dtype)
        or pa.types.is_fixed_size_list(dtype)
    )


def tables(file: pq.ParquetFile, batch_tokens: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (rows before, record batch) with about `batch_tokens` list entries each."""
    first = 0
    longest = 1
    metadata = file.metadata
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group)
        if rows.num_rows:
            widest = max(rows.column(i).num_values for i in range(rows.num_columns))
            longest = max(longest, widest // rows.num_rows)
    size = max(1, min(BATCH_ROWS, batch_tokens // longest))
    for table in file.iter_batches(batch_size=size):
        yield first, table
        first += table.num_rows


@dataclass(frozen=True)
class Laid:
    """A list column laid out by row lengths.

    Args:
        values: (N,) entries; a fill value where the row has none that fit.
        null: (N,) entries that were null, or None if there is none.
        absent: (B,) rows without a list.
        difference: (B,) entries minus tokens.
        misfits: row -> its entries, for rows that do not fit.
    """

    values: NDArray[Any]
    null: NDArray[np.bool_] | None
    absent: NDArray[np.bool_]
    difference: NDArray[np.int64]
    misfits: dict[int, NDArray[Any]]


def lay_out(column: pa.Array, lengths: NDArray[np.int64], fill: Any) -> Laid:
    """Lay the entries of a list column out flat, row by row; rows of another length get `fill`."""
    absent = column.is_null().to_numpy(zero_copy_only=False)
    own = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    entries, null = _entries(pc.list_flatten(column), fill)
    difference = np.where(absent, 0, own - lengths)
    if not absent.any() and not difference.any():
        return Laid(entries, null, absent, difference, {})
    fits = ~absent & (difference == 0)
    here, there = np.repeat(fits, own), np.repeat(fits, lengths)
    values = np.full(int(lengths.sum()), fill, dtype=entries.dtype)
    values[there] = entries[here]
    laid_null = None
    if null is not None:
        laid_null = np.zeros(len(values), np.bool_)
        laid_null[there] = null[here]
    ends = np.cumsum(own)
    wrong = np.flatnonzero(difference)
    misfits = {int(i): entries[ends[i] - own[i] : ends[i]] for i in wrong}
    return Laid(values, laid_null, absent, difference, misfits)


def _entries(flat: pa.Array, fill: Any) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Entries as numpy: float types as stored, integers as int64, masks as bool."""
    null = None
    if flat.null_count:
        null = flat.is_null().to_numpy(zero_copy_only=False)
        masked = False if isinstance(fill, bool) else fill
        if pa.types.is_null(flat.type):
            flat = flat.cast(pa.float64())
        if isinstance(masked, float) and not pa.types.is_floating(flat.type):
            flat = flat.cast(pa.float64())
        flat = flat.fill_null(pa.scalar(masked).cast(flat.type))
    array = np.asarray(flat.to_numpy(zero_copy_only=False))
    if isinstance(fill, bool):
        return array if array.dtype == np.bool_ else array != 0, None
    if isinstance(fill, int):
        return array.astype(np.int64), None
    return array if array.dtype.kind == "f" else array.astype(np.float64), null


def split(batch: TokenBatch, batch_tokens: int) -> Iterator[TokenBatch]:
    """Cut a ragged batch between rows where it holds many more tokens than wanted."""
    if batch.shape[0] <= 2 * batch_tokens:
        yield batch
        return
    lengths = row_lengths(batch)
    piece = (np.cumsum(lengths) - lengths) // batch_tokens
    for start in np.flatnonzero(np.diff(piece, prepend=-1)).tolist():
        stop = int(np.searchsorted(piece, piece[start], side="right"))
        yield take_rows(batch, start, stop)
