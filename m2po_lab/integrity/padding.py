"""Batches filled up by repeating rows under new ids.

A policy that is nearly certain repeats its answers honestly, to the last bit, and does so anywhere
in a step; padding stands at the end of one. So the ends of steps are held against everything else.
"""

from dataclasses import dataclass

import numpy as np

from m2po_lab.integrity.additive import Additive, Bools, Ints
from m2po_lab.integrity.duplicates import Keys
from m2po_lab.integrity.flat import Flat
from m2po_lab.logs.hashing import Hashes, bytes_hash, mix

FEWEST_TOKENS = 8
"""Shorter answers repeat honestly, to the last bit."""
LONE_TOKENS = 32
"""Tokens that a single repeated row needs."""


@dataclass(frozen=True)
class Repeats(Additive):
    """Rows that repeat an earlier row of their file and step under another id.

    Args:
        tail: those in unbroken runs at the end of a step.
        elsewhere: all others.
        steps: ends of steps with such a run.
    """

    tail: int = 0
    elsewhere: int = 0
    steps: int = 0


@dataclass
class _End:
    """The end of one step so far: rows, repeats, the run of repeats it ends in, its last tokens."""

    rows: int = 0
    repeats: int = 0
    run: int = 0
    tokens: float = 0.0

    def take(self, repeated: Bools, tokens: float) -> None:
        """Add rows in order."""
        fresh = np.flatnonzero(~repeated)
        self.run = self.run + repeated.size if not fresh.size else repeated.size - 1 - fresh[-1]
        self.rows += repeated.size
        self.repeats += int(repeated.sum())
        self.tokens = tokens

    def finish(self) -> Repeats:
        """A run that is longer than what comes before it fills nothing up."""
        long_enough = self.run > 1 or (self.run == 1 and self.tokens >= LONE_TOKENS)
        tail = int(self.run) if long_enough and 2 * self.run <= self.rows else 0
        return Repeats(tail, self.repeats - tail, int(tail > 0))


class Tails:
    """Follows the rows of a log in their order; what it remembers is dropped file by file."""

    def __init__(self) -> None:
        """Start before the first row."""
        self._ends: dict[tuple[str, int], _End] = {}
        self._contents, self._rows = Keys(), Keys()
        self._source = ""
        self._found = Repeats()

    def add(self, flat: Flat, live: Bools, key: Hashes) -> None:
        """Add a batch.

        Args:
            flat: the batch, without tokens that do not count.
            live: (B,) rows that count.
            key: (B,) hash of what each row holds.
        """
        index = np.flatnonzero(live)
        if not index.size:
            return
        sources = [flat.rows.source[i] if flat.rows.source else "" for i in index.tolist()]
        if sources[0] != self._source:
            self._contents, self._rows = Keys(), Keys()
        self._source = sources[-1]
        step, counts = flat.row_fact(flat.rows.step)[index], flat.per_row(flat.keep)[index]
        repeated = self._repeated(flat, index, key[index], sources) & (counts >= FEWEST_TOKENS)
        rows_of: dict[tuple[str, int], list[int]] = {}
        for row, place in enumerate(zip(sources, step.tolist(), strict=True)):
            rows_of.setdefault(place, []).append(row)
        for place, here in rows_of.items():
            end = self._ends.setdefault(place, _End())
            end.take(repeated[here], float(counts[here[-1]]))
        for place in [place for place in self._ends if place[0] != self._source]:
            self._found += self._ends.pop(place).finish()

    def _repeated(self, flat: Flat, index: Ints, key: Hashes, sources: list[str]) -> Bools:
        """Rows whose content was there before in their file and step, but not under their id.

        One row scored by several trainer versions keeps its id. Without ids the versions have to
        be the same.
        """
        ids, facts = flat.rows.row_id, [flat.rows.step]
        if ids is None:
            facts += [flat.rows.train_version, flat.rows.mini_batch]
        content = mix(key ^ _hashes(sources))
        for fact in facts:
            content = mix(content ^ mix(flat.row_fact(fact)[index].view(np.uint64)))
        known, self._contents = _seen(content, self._contents)
        if ids is None:
            return known
        rows = mix(content ^ _hashes([ids[i] or "" for i in index.tolist()]))
        same, self._rows = _seen(rows, self._rows)
        return known & ~same

    def finish(self) -> Repeats:
        """What was found since the last call; the log, or this part of it, is over."""
        for place in list(self._ends):
            self._found += self._ends.pop(place).finish()
        found, self._found = self._found, Repeats()
        self._contents, self._rows = Keys(), Keys()
        return found


def _hashes(texts: list[str]) -> Hashes:
    return mix(np.array([bytes_hash(text.encode()) for text in texts], dtype=np.uint64))


def _seen(keys: Hashes, before: Keys) -> tuple[Bools, Keys]:
    """(B,) which keys were there before, in this batch or `before`; and `before` with them."""
    first = np.zeros(keys.shape, np.bool_)
    distinct, at = np.unique(keys, return_index=True)
    first[at] = True
    known = ~first | before.contains(keys)
    new = distinct[~before.contains(distinct)]
    return known, before + Keys((new,) if new.size else ())
