"""Sample: the tokens of the log themselves while they are few, of some rows by their hash beyond.

What-ifs of sequence and mini-batch scope cannot be taken from sums. They are computed after the
pass on the tokens kept here: all of them up to `MOST_TOKENS` (then every number is exact), else
those of the rows whose hash ends in `level` zero bits, a share 2^-level of the rows. Which rows
those are depends neither on the order nor on the split of the log, so samples merge.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from m2po_lab.analysis.bins import Bools, Ints
from m2po_lab.analysis.bootstrap import Hashes, splitmix64
from m2po_lab.analysis.chunk import Chunk, concatenate

MOST_TOKENS = 1 << 19
"""Tokens held at most, about 50 MB."""
SLICE_ELEMENTS = 1 << 22
"""Rows times longest row of one slice at most, unless a single row or scope is larger."""


def row_marks(chunk: Chunk) -> Hashes:
    """Hash of a row's id, step and mini-batch, (B,): decides who is sampled."""
    step = splitmix64(chunk.step.astype(np.uint64))
    return splitmix64(chunk.key ^ splitmix64(step ^ chunk.mini_batch.astype(np.uint64)))


def some_rows(chunk: Chunk, rows: Bools) -> Chunk:
    """Return the chunk with only some of its rows, renumbered."""
    if rows.all():
        return chunk
    number = np.cumsum(rows) - 1
    kept = chunk.where(rows[chunk.row])
    return replace(
        kept,
        row=number[kept.row],
        n_rows=int(rows.sum()),
        key=chunk.key[rows],
        row_id=[],
        response=[],
        token_text=[],
        step=chunk.step[rows],
        mini_batch=chunk.mini_batch[rows],
    )


@dataclass(eq=False)
class Sample:
    """Tokens of all rows, or of a share 2^-level of them.

    Attributes:
        level: how many bits of a row's hash must be zero.
        parts: the tokens, in order of arrival.
    """

    level: int = 0
    parts: list[Chunk] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """How many tokens are held."""
        return sum(part.n for part in self.parts)

    @property
    def complete(self) -> bool:
        """Whether these are all tokens of the log."""
        return self.level == 0

    def add(self, chunk: Chunk) -> None:
        """Add the sampled rows of a chunk."""
        self.parts.append(self._sampled(replace(chunk, row_id=[], response=[], token_text=[])))
        self._thin()

    def absorb(self, other: "Sample") -> None:
        """Add another log's sample."""
        if other.level > self.level:
            self.level = other.level
            self.parts = [self._sampled(part) for part in self.parts]
        self.parts = [*self.parts, *(self._sampled(part) for part in other.parts)]
        self._thin()

    def _sampled(self, chunk: Chunk) -> Chunk:
        if not self.level:
            return chunk
        mask = np.uint64((1 << self.level) - 1)
        return some_rows(chunk, (row_marks(chunk) & mask) == 0)

    def _thin(self) -> None:
        while self.tokens > MOST_TOKENS:
            self.level += 1
            self.parts = [self._sampled(part) for part in self.parts]

    def canonical(self) -> Chunk | None:
        """Return the tokens with rows ordered by step, mini-batch and hash; None if there are none.

        Rows that agree in all of these are ordered by their log-probs.
        """
        parts = [part for part in self.parts if part.n]
        if not parts:
            return None
        whole = concatenate(parts)
        present = np.bincount(whole.row, minlength=whole.n_rows) > 0
        whole = some_rows(whole, present)
        content = [
            np.bincount(whole.row, weights=np.nan_to_num(column), minlength=whole.n_rows)
            for column in whole.columns.values()
        ]
        keys = (*content, row_marks(whole), whole.mini_batch, whole.step)
        return _reordered(whole, np.lexsort(keys))


def _reordered(chunk: Chunk, rows: Ints) -> Chunk:
    """Return the chunk with its rows in another order."""
    place = np.empty(chunk.n_rows, dtype=np.int64)
    place[rows] = np.arange(chunk.n_rows)
    row = place[chunk.row]
    order = np.argsort(row, kind="stable")
    moved = chunk.where(order)
    return replace(
        moved,
        row=row[order],
        key=chunk.key[rows],
        step=chunk.step[rows],
        mini_batch=chunk.mini_batch[rows],
    )


def row_starts(chunk: Chunk) -> Ints:
    """First token of each row and, last, the number of tokens; rows ascend. (B + 1,)."""
    counts = np.bincount(chunk.row, minlength=chunk.n_rows)
    return np.concatenate(([0], np.cumsum(counts)))


def slices(chunk: Chunk) -> Iterator[slice]:
    """Cut rows into slices whose padded layout stays within `SLICE_ELEMENTS`."""
    lengths = np.diff(row_starts(chunk))
    start, longest = 0, 0
    for row, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        if row > start and (row - start + 1) * longest > SLICE_ELEMENTS:
            yield slice(start, row)
            start, longest = row, length
    if len(lengths) > start:
        yield slice(start, len(lengths))


def scopes(chunk: Chunk, columns: tuple[Ints, ...]) -> Iterator[slice]:
    """Slices of neighbouring rows that agree in all columns, such as (step, mini-batch)."""
    change = np.zeros(chunk.n_rows, dtype=np.bool_)
    change[:1] = True
    for column in columns:
        change[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(change).tolist()
    for start, stop in zip(starts, [*starts[1:], chunk.n_rows], strict=True):
        yield slice(start, stop)
