"""Joining small ragged batches: a thousand tiny files do not make a thousand tiny batches."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2po_lab.core.batch import TOKEN_FIELDS, TokenBatch
from m2po_lab.logs.reader import BATCH_ROWS
from m2po_lab.logs.rows import UNKNOWN, Rows

_LISTS = ("row_id", "group_id", "finish_reason", "prompt", "response", "token_text")
_INTEGERS = ("step", "mini_batch", "train_version", "prompt_length", "response_length")
_PER_ROW = ("unaligned", "retokenised", "content", "prompt_key", "reward", "advantage", "line")


def coalesce(batches: Iterable[TokenBatch], batch_tokens: int) -> Iterator[TokenBatch]:
    """Join neighbouring batches that have the same columns, up to `batch_tokens` tokens."""
    held: list[TokenBatch] = []
    tokens = rows = 0
    for batch in batches:
        full = tokens + batch.shape[0] > batch_tokens or rows + batch.n_rows > BATCH_ROWS
        if held and (full or _kind(held[0]) != _kind(batch)):
            yield concatenate(held)
            held, tokens, rows = [], 0, 0
        held.append(batch)
        tokens += batch.shape[0]
        rows += batch.n_rows
    if held:
        yield concatenate(held)


def _kind(batch: TokenBatch) -> tuple[Any, ...]:
    """What two batches must share to be joined without inventing values."""
    rows: Rows = batch.rows
    dtypes = tuple(getattr(batch, name).dtype.str for name in batch.present())
    return (batch.present(), dtypes, rows.has_mask, rows.length_unit)


def concatenate(batches: Sequence[TokenBatch]) -> TokenBatch:
    """Join ragged batches that have the same token columns, rows in order."""
    if len(batches) == 1:
        return batches[0]
    present = batches[0].present()
    arrays = {
        n: np.concatenate([getattr(b, n) for b in batches]) for n in TOKEN_FIELDS if n in present
    }
    lengths = np.concatenate([b.lengths for b in batches])
    return TokenBatch(**arrays, lengths=lengths, rows=_rows(batches))


def _rows(batches: Sequence[TokenBatch]) -> Rows:
    """Join the Rows; where one batch lacks a field the others have, it is filled with unknowns."""
    parts: list[Rows] = [b.rows for b in batches]
    counts = [b.n_rows for b in batches]
    sizes = [b.shape[0] for b in batches]
    joined: dict[str, Any] = {
        "source": [s for part in parts for s in part.source or []],
        "token_ids": _filled([p.token_ids for p in parts], sizes, -1, np.int64),
        "weights": _filled([p.weights for p in parts], sizes, np.nan, np.float64),
    }
    for name in _LISTS:
        lists = [getattr(p, name) for p in parts]
        if any(found is not None for found in lists):
            pairs = zip(lists, counts, strict=True)
            joined[name] = [
                x for found, n in pairs for x in (found if found is not None else [None] * n)
            ]
    for name in _INTEGERS:
        joined[name] = _filled([getattr(p, name) for p in parts], counts, UNKNOWN, np.int64)
    for name in _PER_ROW:
        arrays = [getattr(p, name) for p in parts]
        fill = np.nan if name in ("reward", "advantage") else 0
        joined[name] = _filled(arrays, counts, fill, None)
    joined["nulls"] = _dicts([p.nulls for p in parts], sizes, np.bool_)
    joined["absent"] = _dicts([p.absent for p in parts], counts, np.bool_)
    differences = [p.length_difference for p in parts]
    joined["length_difference"] = _dicts(differences, counts, np.int64)
    joined["misfits"] = _misfits(parts, counts)
    return Rows(**joined, has_mask=parts[0].has_mask, length_unit=parts[0].length_unit)


def _misfits(parts: list[Rows], counts: list[int]) -> dict[str, dict[int, Any]]:
    """Join the entries of rows that do not fit under their new row numbers."""
    joined: dict[str, dict[int, Any]] = {}
    first = 0
    for part, n in zip(parts, counts, strict=True):
        for name, found in part.misfits.items():
            joined.setdefault(name, {}).update({first + row: v for row, v in found.items()})
        first += n
    return joined


def row_lengths(batch: TokenBatch) -> NDArray[np.int64]:
    """Tokens of each row of a ragged batch."""
    return np.asarray(batch.lengths, dtype=np.int64)


def take_rows(batch: TokenBatch, start: int, stop: int) -> TokenBatch:
    """Rows start to stop of a ragged batch, as views where arrays can be."""
    lengths = row_lengths(batch)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    low, high = int(ends[start]), int(ends[stop])
    arrays = {name: getattr(batch, name)[low:high] for name in batch.present()}
    return TokenBatch(
        **arrays,
        lengths=lengths[start:stop],
        rows=_cut(batch.rows, slice(start, stop), slice(low, high)),
    )


def _cut(rows: Rows, some: slice, tokens: slice) -> Rows:
    """Rows of a part of a batch."""
    per_row = ("source", *_LISTS, *_INTEGERS, *_PER_ROW)
    values: dict[str, Any] = {n: _at(getattr(rows, n), some) for n in per_row}
    values.update({n: _at(getattr(rows, n), tokens) for n in ("token_ids", "weights")})
    values["nulls"] = {n: v[tokens] for n, v in rows.nulls.items()}
    values["absent"] = {n: v[some] for n, v in rows.absent.items()}
    values["length_difference"] = {n: v[some] for n, v in rows.length_difference.items()}
    values["misfits"] = {
        n: {row - some.start: v for row, v in found.items() if some.start <= row < some.stop}
        for n, found in rows.misfits.items()
    }
    return Rows(**values, has_mask=rows.has_mask, length_unit=rows.length_unit)


def _at(values: Any, some: slice) -> Any:
    """A part of a field that may be None."""
    return None if values is None else values[some]


def _filled(arrays: list[Any], sizes: list[int], fill: Any, dtype: Any) -> Any:
    """Concatenate; None becomes `fill`. None if all are None."""
    given = [a for a in arrays if a is not None]
    if not given:
        return None
    dtype = dtype or given[0].dtype
    pairs = zip(arrays, sizes, strict=True)
    return np.concatenate([np.full(n, fill, dtype) if a is None else a for a, n in pairs])


def _dicts(dicts: list[dict[str, Any]], sizes: list[int], dtype: Any) -> dict[str, Any]:
    """Concatenate dicts of arrays, zero where one lacks a name."""
    names = dict.fromkeys(name for d in dicts for name in d)
    return {n: _filled([d.get(n) for d in dicts], sizes, 0, dtype) for n in names}
