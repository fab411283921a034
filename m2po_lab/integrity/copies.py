"""Whole files that repeat another file row by row: rank shards without row ids."""

from collections.abc import Iterable, Iterator

import numpy as np

from m2po_lab.core.batch import TokenBatch
from m2po_lab.integrity.additive import Bools
from m2po_lab.integrity.duplicates import content
from m2po_lab.integrity.flat import flatten
from m2po_lab.logs.hashing import Hashes, bytes_hash, mix

PREFIX = 64
"""Rows of each file that are remembered one by one; after that only whole files are compared."""
FEWEST_ROWS = 2
"""A file of one row is no shard: two equal answers in two files may be honest."""


def tell_copies(
    batches: Iterable[TokenBatch], shelf: "Shelf | None" = None
) -> Iterator[tuple[TokenBatch, Bools]]:
    """Yield each batch with the rows that belong to a copy of an earlier file, (B,) boolean.

    Only files whose rows have no ids can be copies, and only of a file of the same step. A file is
    held back while it agrees with the beginning of an earlier one, so that nothing has to be taken
    out of the statistics later; at most one file is held. Batches come in the order of the log.

    Args:
        batches: whole files.
        shelf: the files that came before; grows.
    """
    shelf = shelf or Shelf()
    for batch in batches:
        rows = batch.rows
        if rows is None or rows.source is None or rows.row_id is not None:
            yield from shelf.end()
            yield batch, np.zeros(batch.n_rows, dtype=np.bool_)
        else:
            yield from shelf.take(batch)
    yield from shelf.end()


def _row_keys(batch: TokenBatch) -> Hashes:
    """(B,) key of content, step and trainer version."""
    flat = flatten(batch)
    key = content(flat)
    for fact in (flat.rows.step, flat.rows.train_version):
        key = mix(key ^ mix(flat.row_fact(fact).view(np.uint64)))
    return key


class Shelf:
    """Contents of the files so far, and the batches that wait for a verdict."""

    def __init__(self) -> None:
        self.files: set[bytes] = set()
        self.fresh: set[int] = set()
        self.prefixes: set[bytes] = set()
        self.held: list[tuple[TokenBatch, Bools]] = []
        self.source: str | None = None
        self.trail: list[bytes] = []
        self.digest = b""
        self.open_rows: list[tuple[Bools, int]] = []

    def take(self, batch: TokenBatch) -> Iterator[tuple[TokenBatch, Bools]]:
        """Add a batch; give back what is decided."""
        copied = np.zeros(batch.n_rows, dtype=np.bool_)
        self.held.append((batch, copied))
        for at, (source, key) in enumerate(
            zip(batch.rows.source, _row_keys(batch).tolist(), strict=True)
        ):
            if source != self.source:
                self.close()
                self.source = source
            self.open_rows.append((copied, at))
            self.digest = bytes_hash(self.digest + key.to_bytes(8, "little")).to_bytes(8, "little")
            if len(self.trail) < PREFIX:
                self.trail.append(self.digest)
        if self.trail[-1] not in self.prefixes:
            yield from self.release()

    def close(self) -> None:
        """The open file is complete: is it one of those before?"""
        if self.open_rows:
            if len(self.open_rows) >= FEWEST_ROWS:
                if self.digest in self.files:
                    for copied, at in self.open_rows:
                        copied[at] = True
                else:
                    self.fresh.add(int.from_bytes(self.digest, "little"))
            self.files.add(self.digest)
            self.prefixes.update(self.trail)
        self.source, self.digest, self.trail, self.open_rows = None, b"", [], []

    def end(self) -> Iterator[tuple[TokenBatch, Bools]]:
        """No more rows of the open file will come."""
        self.close()
        yield from self.release()

    def release(self) -> Iterator[tuple[TokenBatch, Bools]]:
        """Give the held batches out; what is open in them is no copy any more, or decided."""
        yield from self.held
        self.held.clear()
