"""Chunk: the kept tokens of some batches as flat numpy columns, ready to be grouped.

Batches of a log are small (a file may hold a few rows); the statistics are taken over chunks of
about `CHUNK_TOKENS` tokens, so that the cost of a call is shared by many tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from m2po_lab.analysis.bins import Array, Bools, Floats, Ints
from m2po_lab.analysis.bootstrap import Hashes, bucket, hash_texts, splitmix64
from m2po_lab.core.batch import RATIOS, TokenBatch
from m2po_lab.logs.rows import UNKNOWN, Rows

CHUNK_TOKENS = 1 << 18

FLOAT_COLUMNS = ("behavior_logp", "proximal_logp", "current_logp", "advantage", "entropy")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Kept tokens, flat; a column that no batch of the chunk has is absent from `columns`.

    Attributes:
        columns: float64 per token, among `FLOAT_COLUMNS`; NaN where a batch lacks the column.
        row: (N,) row in the chunk, ascending.
        index: (N,) position of the token in its row as logged.
        position: (N,) position counted from the first token of the row's loss mask.
        lag: (N,) train_version - version, UNKNOWN where either is.
        n_rows: B, rows without a kept token included.
        bucket: (B,) bootstrap bucket.
        step: (B,) step, else train_version, else UNKNOWN.
        mini_batch: (B,) mini-batch within the step, else UNKNOWN.
    """

    columns: dict[str, Floats]
    row: Ints
    index: Ints
    position: Ints
    lag: Ints
    n_rows: int
    bucket: Ints
    step: Ints
    mini_batch: Ints

    @property
    def n(self) -> int:
        """How many kept tokens there are."""
        return int(self.row.size)

    def log_ratio(self, ratio: str) -> Floats | None:
        """Return d of every kept token, not finite where unknown; None without a column."""
        top, bottom = RATIOS[ratio]
        if top not in self.columns or bottom not in self.columns:
            return None
        with np.errstate(invalid="ignore"):
            return self.columns[top] - self.columns[bottom]

    def where(self, keep: Bools) -> "Chunk":
        """Return the chunk with some of its tokens; rows stay as they are."""
        tokens = {name: getattr(self, name)[keep] for name in ("row", "index", "position", "lag")}
        columns = {name: values[keep] for name, values in self.columns.items()}
        return replace(self, columns=columns, **tokens)


def as_numpy(array: Any, dtype: Any = None) -> Array:
    """Return any array as a numpy one; torch tensors are detached and moved to the host."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        if "bfloat16" in str(array.dtype):
            array = array.float()
        array = array.numpy()
    return np.asarray(array, dtype=dtype)


def chunk_of(batch: TokenBatch, loss_mask: Any | None = None) -> Chunk:
    """Take the kept tokens out of a batch.

    Args:
        batch: tokens; `keep` may have been reduced by integrity checks.
        loss_mask: `keep` before that, from whose first token positions are counted.
    """
    keep = as_numpy(batch.keep).reshape(-1)
    mask = keep if loss_mask is None else as_numpy(loss_mask).reshape(-1)
    rows, index = (as_numpy(a, np.int64).reshape(-1) for a in batch.row_and_position)
    first = np.full(batch.n_rows, np.iinfo(np.int64).max)
    np.minimum.at(first, rows[mask], index[mask])
    whole = bool(keep.all())

    def kept(values: Array) -> Array:
        return values if whole else values[keep]

    row, at = kept(rows), kept(index)
    columns = {
        name: kept(as_numpy(getattr(batch, name), np.float64).reshape(-1))
        for name in FLOAT_COLUMNS
        if getattr(batch, name) is not None
    }
    facts: Rows = batch.rows if batch.rows is not None else Rows()
    train = _per_row(facts.train_version, batch.n_rows)
    step = _per_row(facts.step, batch.n_rows)
    return Chunk(
        columns=columns,
        row=row,
        index=at,
        position=at - first[row],
        lag=_lag(kept(as_numpy(batch.version).reshape(-1)), train[row])
        if batch.version is not None
        else np.full(row.shape, UNKNOWN),
        n_rows=batch.n_rows,
        bucket=bucket(row_hashes(facts, batch.n_rows, row, columns)),
        step=np.where(step == UNKNOWN, train, step),
        mini_batch=_per_row(facts.mini_batch, batch.n_rows),
    )


def _per_row(values: Any, n_rows: int) -> Ints:
    if values is None:
        return np.full(n_rows, UNKNOWN, dtype=np.int64)
    return np.asarray(values, dtype=np.int64)


def _lag(version: Array, train: Ints) -> Ints:
    """Lag per token; versions below 0 or not a number mean unknown."""
    known = (version >= 0) & (train != UNKNOWN)
    if version.dtype.kind == "f":
        version = np.where(np.isfinite(version), version, 0)
    return np.where(known, train - version.astype(np.int64), UNKNOWN)


def row_hashes(facts: Rows, n_rows: int, row: Ints, columns: dict[str, Floats]) -> Hashes:
    """Return a hash of each row's id, else of its content, else of its log-probs.

    The same row scored by several trainer versions keeps its id and thus its bootstrap weight.
    """
    if facts.row_id is not None:
        hashes = hash_texts(facts.row_id)
        absent = np.asarray([name is None for name in facts.row_id], dtype=np.bool_)
        if not absent.any():
            return hashes
        return np.where(absent, _content(facts, n_rows, row, columns), hashes)
    return _content(facts, n_rows, row, columns)


def _content(facts: Rows, n_rows: int, row: Ints, columns: dict[str, Floats]) -> Hashes:
    if facts.content is not None:
        return np.asarray(facts.content, dtype=np.uint64)
    total = np.zeros(n_rows, dtype=np.uint64)
    for values in columns.values():
        np.add.at(total, row, splitmix64(values.view(np.uint64)))
    return total


def concatenate(chunks: Sequence[Chunk]) -> Chunk:
    """Return one chunk with the rows of all, in order."""
    if len(chunks) == 1:
        return chunks[0]
    names = [n for n in FLOAT_COLUMNS if any(n in c.columns for c in chunks)]
    starts = np.cumsum([0, *(c.n_rows for c in chunks)])
    return Chunk(
        columns={
            n: np.concatenate([c.columns.get(n, np.full(c.n, np.nan)) for c in chunks])
            for n in names
        },
        row=np.concatenate([c.row + start for c, start in zip(chunks, starts, strict=False)]),
        n_rows=int(starts[-1]),
        **{
            n: np.concatenate([getattr(c, n) for c in chunks])
            for n in ("index", "position", "lag", "bucket", "step", "mini_batch")
        },
    )
