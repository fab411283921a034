"""check: a batch in, the same batch without what cannot be trusted and the evidence for it out."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from m2po_lab.core.batch import TokenBatch
from m2po_lab.integrity import columns, groups, pairs, shifts, steps, versions
from m2po_lab.integrity.additive import Bools
from m2po_lab.integrity.copies import Shelf, tell_copies
from m2po_lab.integrity.duplicates import Keys, content, duplicates
from m2po_lab.integrity.evidence import BatchIntegrity, RowCounts
from m2po_lab.integrity.exclude import exclude, unaligned
from m2po_lab.integrity.faults import Charge
from m2po_lab.integrity.flat import Flat, flatten
from m2po_lab.integrity.kept import Kept
from m2po_lab.integrity.padding import Repeats, Tails
from m2po_lab.integrity.reuse import reuse


def check(
    batch: TokenBatch,
    seen: Keys | None = None,
    copies: Bools | None = None,
    tails: Tails | None = None,
    given: Collection[Charge] = (),
) -> tuple[TokenBatch, BatchIntegrity]:
    """Exclude what cannot be trusted from a batch and say what was met.

    Values are never changed; `keep` shrinks. Duplicates within the batch are found here; to find
    those of earlier batches pass their keys, or use `checked`.

    Args:
        batch: as a reader gave it.
        seen: `keys` of everything counted so far.
        copies: (B,) rows of a file that repeats another, see `copies.tell_copies`.
        tails: follows the ends of steps, which may lie in another batch; without it the batch is
            taken for all there is.
        given: charges that the whole log bears out, see `marks`.

    Returns:
        The batch with the reduced keep (text-only ones as they came), and the evidence.
    """
    flat = flatten(batch)
    key = content(flat)
    repeated, keys = duplicates(flat, key, seen or Keys())
    if copies is not None:
        repeated |= copies
    logged = flat.kept(flat.keep & ~np.repeat(repeated, flat.lengths))
    left = exclude(flat, logged, repeated, given)
    clean = flat.kept(left.keep)
    rows, live = _count_rows(flat, logged, clean, repeated)
    follower = tails or Tails()
    follower.add(clean, live, key)
    kept, ratios = Kept(clean), clean.ratios()
    evidence = BatchIntegrity(
        tokens=left.tokens,
        rows=rows,
        faults=left.faults,
        fault_rows=left.fault_rows,
        lengths=_lengths(flat, ~repeated),
        retokenised=_count(flat.rows.retokenised, ~repeated),
        repeats=Repeats() if tails else follower.finish(),
        columns=columns.grids(clean),
        weights=columns.weights(clean),
        marks=left.marks,
        versions=versions.versions(clean),
        reuse=reuse(clean),
        groups=groups.groups(flat, ~repeated),
        shifts={ratio: shifts.measure(kept, ratio) for ratio in ratios},
        pairs={ratio: pairs.measure(kept, ratio) for ratio in ratios},
        cells={ratio: steps.by_cell(kept, ratio) for ratio in ratios},
        halves={ratio: steps.halves(kept, ratio) for ratio in ratios},
        steps=steps.by_step(clean),
        keys=keys,
    )
    return batch.replace(keep=left.keep.reshape(batch.shape)), evidence


@dataclass
class Memory:
    """What identifies the rows that were counted, across the parts of a log.

    Attributes:
        keys: of rows with ids, 8 bytes each.
        shelf: contents of files whose rows have none.
        tails: ends of the steps of the file that is read.
        given: charges that the whole log is known to bear out.
    """

    keys: Keys = field(default_factory=Keys)
    shelf: Shelf = field(default_factory=Shelf)
    tails: Tails = field(default_factory=Tails)
    given: frozenset[Charge] = frozenset()

    def rest(self) -> BatchIntegrity:
        """What only the end of a part tells: the files in it, and how its steps ended."""
        new = np.sort(np.array([*self.shelf.fresh], dtype=np.uint64))
        self.shelf.fresh.clear()
        return BatchIntegrity(files=Keys((new,) if new.size else ()), repeats=self.tails.finish())


def checked(
    batches: Iterable[TokenBatch], memory: Memory | None = None
) -> Iterator[tuple[TokenBatch, BatchIntegrity]]:
    """Check a stream of batches in the order of the log.

    Finds duplicates across batches, and files that repeat another. The keys of all rows with ids
    are kept, 8 bytes a row. `memory.rest()` is to be added at the end.

    Args:
        batches: whole files, one after the other.
        memory: what was counted before; grows.
    """
    memory = memory or Memory()
    for batch, copies in tell_copies(batches, memory.shelf):
        clean, evidence = check(batch, memory.keys, copies, memory.tails, memory.given)
        memory.keys += evidence.keys
        yield clean, evidence


def _count(values: Bools | None, rows: Bools) -> int:
    return 0 if values is None else int((values & rows).sum())


def _count_rows(flat: Flat, logged: Flat, clean: Flat, repeated: Bools) -> tuple[RowCounts, Bools]:
    """Each row under the first reason that applies; and the rows with a kept token."""
    live = clean.per_row(clean.keep) > 0
    empty = ~repeated & (flat.per_row(flat.keep) == 0)
    apart = ~repeated & ~empty & unaligned(flat)
    if not flat.logp and not flat.keep.any() and not flat.lengths.any():
        live, empty = ~repeated, np.zeros_like(repeated)
    lost = ~(live | repeated | empty | apart)
    counts = RowCounts(
        read=flat.n_rows,
        kept=int(live.sum()),
        empty=int(empty.sum()),
        duplicate=int(repeated.sum()),
        emptied=int(lost.sum()),
        unaligned=int(apart.sum()),
    )
    return counts, live


def _lengths(flat: Flat, rows: Bools) -> dict[tuple[str, str], int]:
    """Rows by column and by the side on which the column does not fit."""
    found = {}
    for column, difference in flat.rows.length_difference.items():
        for side, hit in (("longer", difference > 0), ("shorter", difference < 0)):
            if count := int((hit & rows).sum()):
                found[column, side] = count
    return found
