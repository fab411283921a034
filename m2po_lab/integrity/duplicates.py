"""The same row twice: replicas of parallel ranks, which would be counted double.

Identity decides, never content alone: short answers repeat honestly, to the last bit. Two rows are
one if they have the same id, step, trainer version and content. Rows without ids are dropped only
if the whole file they come from equals another file, row by row.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from m2po_lab.integrity.additive import Bools
from m2po_lab.integrity.flat import Flat
from m2po_lab.logs.hashing import Hashes, bytes_hash, mix, row_hashes


@dataclass(frozen=True)
class Keys:
    """A set of 64-bit keys that grows by `+`; sorted blocks of doubling size, so a merge is cheap.

    Args:
        blocks: sorted arrays, disjoint.
        repeated: how many keys were on both sides of a merge, that is rows counted twice because
            two workers could not see each other.
    """

    blocks: tuple[Hashes, ...] = ()
    repeated: int = 0

    def __add__(self, other: "Keys") -> "Keys":
        """Union."""
        merged, repeated = self, self.repeated + other.repeated
        blocks = list(self.blocks)
        for block in other.blocks:
            known = merged.contains(block)
            repeated += int(known.sum())
            blocks.append(block[~known])
        blocks.sort(key=len, reverse=True)
        while len(blocks) > 1 and len(blocks[-2]) <= 2 * len(blocks[-1]):
            blocks[-2:] = [np.sort(np.concatenate(blocks[-2:]))]
        return Keys(tuple(b for b in blocks if len(b)), repeated)

    def contains(self, keys: Hashes) -> Bools:
        """Which of the keys are in the set."""
        found = np.zeros(keys.shape, dtype=np.bool_)
        for block in self.blocks:
            at = np.minimum(np.searchsorted(block, keys), len(block) - 1)
            found |= block[at] == keys
        return found


def content(flat: Flat) -> Hashes:
    """(B,) hash of what each row holds.

    Where the trainer version is known it already says under which weights the current log-probs
    were
    taken: replicas differ in them by kernel noise at most, so they are left out. Else the reader's
        hash
    of the whole row counts, or one of all arrays.
    """
    rows = flat.rows
    columns: dict[str, NDArray[np.generic]] = {**flat.logp, "keep": flat.keep}
    for name, values in (("advantage", flat.advantage), ("token_ids", rows.token_ids)):
        if values is not None:
            columns[name] = values
    if rows.train_version is None or len(flat.logp) < 2:
        return row_hashes(columns, flat.lengths) if rows.content is None else rows.content
    columns.pop("current_logp", None)
    key = row_hashes(columns, flat.lengths)
    if rows.prompt_key is not None:
        key = mix(key ^ rows.prompt_key)
    return key if rows.reward is None else mix(key ^ rows.reward.view(np.uint64))


def row_keys(flat: Flat, key: Hashes) -> tuple[Hashes, Bools]:
    """(B,) key of id, step, versions and content `key`, and which rows have an id."""
    ids = flat.rows.row_id
    if ids is None:
        return np.zeros(flat.n_rows, np.uint64), np.zeros(flat.n_rows, np.bool_)
    named = np.array([i is not None for i in ids], dtype=np.bool_)
    identity = np.array([bytes_hash((i or "").encode()) for i in ids], dtype=np.uint64)
    for fact in (flat.rows.step, flat.rows.train_version, flat.rows.mini_batch):
        identity = mix(identity ^ mix(flat.row_fact(fact).view(np.uint64)))
    return mix(identity ^ key), named


def duplicates(flat: Flat, key: Hashes, seen: Keys) -> tuple[Bools, Keys]:
    """Rows that were there before, in this batch or among `seen`, and the keys that are new.

    `key` is the `content` of the rows.
    """
    keys, named = row_keys(flat, key)
    fresh = np.zeros(flat.n_rows, dtype=np.bool_)
    index = np.flatnonzero(named)
    fresh[index[np.unique(keys[index], return_index=True)[1]]] = True
    fresh &= ~seen.contains(keys)
    new = np.sort(keys[fresh])
    return named & ~fresh, Keys((new,) if len(new) else ())
