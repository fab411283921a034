"""LogWriter: native log files that are either whole or not there."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from m2po_lab.logs.rows import UNKNOWN
from m2po_lab.logs.schema import ORDER, ROW_COLUMNS, SCHEMA_KEY, SCHEMA_VALUE, TOKEN_COLUMNS

GROUP_TOKENS = 1 << 20


class LogWriter:
    """Writes a native log, one Parquet file at a time, each whole or not at all.

    A file is written under a hidden name beside its place, flushed to the disk and renamed, and the
    directory is flushed too: a reader never meets half a file, a killed run leaves a readable log.
    The same columns give the same bytes.

    Args:
        directory: where the files go; made if it does not exist.
        compression: Parquet codec.
    """

    def __init__(self, directory: str | os.PathLike[str], *, compression: str = "zstd") -> None:
        """Make the directory."""
        self.directory = Path(directory)
        self.compression = compression
        self.directory.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, lengths: ArrayLike, **columns: Any) -> Path:
        """Write one file of B responses with N tokens in all; replaces a file of the same name.

        Args:
            name: file name without suffix, such as `step_000007`.
            lengths: (B,) tokens of each response.
            columns: by the names of the native schema. A token column is flat, (N,); a row column
                is (B,) or one value for all. `advantage` may be (N,) or (B,). None leaves a column
                out. NaN rewards, negative numbers that mark unknown integers, and None are null.
                A ready pyarrow array is written as it is.

        Returns:
            Path of the file.

        Raises:
            ValueError: an unknown column, or one that does not fit the lengths.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        given = {key: value for key, value in columns.items() if value is not None}
        if unknown := given.keys() - set(ORDER):
            raise ValueError(
                f"{name}: no native column {sorted(unknown)}; one of {', '.join(ORDER)}"
            )
        arrays = {key: _column(key, given[key], sizes) for key in ORDER if key in given}
        if not arrays:
            raise ValueError(f"{name}: no column to write; give at least behavior_logp")
        table = pa.table(arrays).replace_schema_metadata({SCHEMA_KEY: SCHEMA_VALUE})
        return self._whole(f"{name}.parquet", table, _rows_in_group(sizes))

    def _whole(self, file_name: str, table: pa.Table, group: int) -> Path:
        """Write beside the place, flush, rename, flush the directory."""
        place = self.directory / file_name
        hidden = self.directory / f".{file_name}.tmp-{os.getpid()}"
        try:
            with hidden.open("wb") as stream:
                pq.write_table(table, stream, compression=self.compression, row_group_size=group)
                stream.flush()
                os.fsync(stream.fileno())
            hidden.replace(place)
        except BaseException:
            hidden.unlink(missing_ok=True)
            raise
        _flush_directory(self.directory)
        return place


def _flush_directory(directory: Path) -> None:
    """Make the rename itself survive a power cut, where the system can."""
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def _rows_in_group(lengths: NDArray[np.int64]) -> int:
    """Rows of a row group, so that reading one takes bounded memory."""
    mean = float(lengths.mean()) if len(lengths) else 0.0
    return max(1, int(GROUP_TOKENS / mean)) if mean > 0 else 65_536


def _column(name: str, value: Any, lengths: NDArray[np.int64]) -> pa.Array:
    """One column as a pyarrow array of the schema's type."""
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return value
    n_rows, n = len(lengths), int(lengths.sum())
    if name in ROW_COLUMNS:
        return _per_row(name, value, n_rows, ROW_COLUMNS[name])
    flat = _numpy(value)
    if name == "advantage" and flat.shape == (n_rows,) and n_rows != n:
        return pa.array(flat, TOKEN_COLUMNS[name])
    if flat.shape != (n,):
        raise ValueError(f"{name} has shape {flat.shape}; the lengths add up to ({n},)")
    return list_array(flat, lengths, TOKEN_COLUMNS[name])


def _numpy(value: Any) -> NDArray[Any]:
    """A numpy array of a list, or of a tensor of any library (bfloat16 by way of float32)."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if value.is_floating_point() else value
    return np.asarray(value)


def list_array(
    flat: NDArray[Any],
    lengths: NDArray[np.int64],
    dtype: pa.DataType,
    null: NDArray[np.bool_] | None = None,
    absent: NDArray[np.bool_] | None = None,
) -> pa.Array:
    """Flat values and row lengths -> list column.

    Args:
        flat: (N,) values.
        lengths: (B,) entries of each row.
        dtype: type of an entry.
        null: (N,) entries that are null.
        absent: (B,) rows that have no list; their entries are not written.
    """
    gone = np.zeros(len(lengths), np.bool_) if absent is None else absent
    if gone.any():
        stays = np.repeat(~gone, lengths)
        flat, null = flat[stays], None if null is None else null[stays]
        lengths = np.where(gone, 0, lengths)
    entries = pa.array(flat, mask=null).cast(dtype)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if offsets[-1] > 2**31 - 1:
        raise ValueError(f"{offsets[-1]} tokens in one file; write at most 2147483647")
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), entries, mask=pa.array(gone) if gone.any() else None
    )


def _per_row(name: str, value: Any, n_rows: int, dtype: pa.DataType) -> pa.Array:
    """A row column; unknowns become null."""
    if value is None or isinstance(value, str | int | float | np.generic):
        value = [value] * n_rows
    if len(value) != n_rows:
        raise ValueError(f"{name} has {len(value)} entries for {n_rows} rows")
    if pa.types.is_string(dtype):
        return pa.array([None if v is None else str(v) for v in value], dtype)
    values = _numpy(value)
    if values.dtype == object:
        return pa.array(_plain(value), dtype)
    null = np.isnan(values) if values.dtype.kind == "f" else values == UNKNOWN
    return pa.array(np.where(null, 0, values), mask=null).cast(dtype)


def _plain(values: Sequence[Any]) -> list[Any]:
    """Python numbers or None."""
    return [v.item() if isinstance(v, np.generic) else v for v in values]
