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

TOKEN_FIELDS = ("row", "index", "position", "lag", "token_id")
JOINED = (*TOKEN_FIELDS[1:], "key", "step", "mini_batch")
FLOAT_COLUMNS = ("behavior_logp", "proximal_logp", "current_logp", "advantage", "entropy")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Kept tokens, flat; a column that no batch of the chunk has is absent from `columns`.

    Attributes:
        columns: float64 per token, among `FLOAT_COLUMNS`; NaN where a batch lacks the column.
        row: (N,) row in the chunk, ascending.
        index: (N,) position of the token in its row as logged.
        position: (N,) position counted from the first kept token of its row.
        lag: (N,) train_version - version, UNKNOWN where either is.
        token_id: (N,) id of the token, -1 where unknown.
        n_rows: B, rows without a kept token included.
        key: (B,) hash of the row's id.
        row_id: (B,) ids, None where unknown.
        response: (B,) texts, None where unknown.
        token_text: (B,) what each token of the row reads, None where unknown.
        step: (B,) step, else train_version, else UNKNOWN.
        mini_batch: (B,) mini-batch within the step, else UNKNOWN.
    """

    columns: dict[str, Floats]
    row: Ints
    index: Ints
    position: Ints
    lag: Ints
    token_id: Ints
    n_rows: int
    key: Hashes
    row_id: list[str | None]
    response: list[str | None]
    token_text: list[list[str] | None]
    step: Ints
    mini_batch: Ints

    @property
    def n(self) -> int:
        """How many kept tokens there are."""
        return int(self.row.size)

    @property
    def bucket(self) -> Ints:
        """Bootstrap bucket of each row, (B,)."""
        return bucket(self.key)

    def log_ratio(self, ratio: str) -> Floats | None:
        """Return d of every kept token, not finite where unknown; None without a column."""
        top, bottom = RATIOS[ratio]
        if top not in self.columns or bottom not in self.columns:
            return None
        with np.errstate(invalid="ignore"):
            return self.columns[top] - self.columns[bottom]

    def where(self, keep: Bools | Ints) -> "Chunk":
        """Return the chunk with some of its tokens (mask or index); rows stay as they are."""
        tokens = {name: getattr(self, name)[keep] for name in TOKEN_FIELDS}
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


def chunk_of(batch: TokenBatch) -> Chunk:
    """Take the kept tokens out of a batch."""
    keep = as_numpy(batch.keep).reshape(-1)
    whole = bool(keep.all())

    def kept(values: Any, dtype: Any = None) -> Array:
        flat = as_numpy(values, dtype).reshape(-1)
        return flat if whole else flat[keep]

    row, index = (kept(values, np.int64) for values in batch.row_and_position)
    first = np.full(batch.n_rows, np.iinfo(np.int64).max)
    np.minimum.at(first, row, index)
    columns = {
        name: kept(getattr(batch, name), np.float64)
        for name in FLOAT_COLUMNS
        if getattr(batch, name) is not None
    }
    facts: Rows = batch.rows if batch.rows is not None else Rows()
    train, step = (_per_row(v, batch.n_rows) for v in (facts.train_version, facts.step))
    unknown = np.full(row.shape, UNKNOWN)
    return Chunk(
        columns=columns,
        row=row,
        index=index,
        position=index - first[row],
        lag=unknown if batch.version is None else _lag(kept(batch.version), train[row]),
        token_id=np.full(row.shape, -1) if facts.token_ids is None else kept(facts.token_ids),
        n_rows=batch.n_rows,
        key=row_hashes(facts, batch.n_rows, row, columns),
        row_id=facts.row_id if facts.row_id is not None else [None] * batch.n_rows,
        response=facts.response if facts.response is not None else [None] * batch.n_rows,
        token_text=facts.token_text if facts.token_text is not None else [None] * batch.n_rows,
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
        row_id=[name for c in chunks for name in c.row_id],
        response=[text for c in chunks for text in c.response],
        token_text=[texts for c in chunks for texts in c.token_text],
        **{n: np.concatenate([getattr(c, n) for c in chunks]) for n in JOINED},
    )
