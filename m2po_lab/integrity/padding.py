"""Batches filled up by repeating rows under new ids."""

import numpy as np

from m2po_lab.integrity.additive import Bools
from m2po_lab.integrity.flat import Flat
from m2po_lab.logs.hashing import Hashes

FEWEST_TOKENS = 8
"""Shorter answers repeat honestly, to the last bit."""
LONE_TOKENS = 32
"""Tokens that a single repeated row needs."""


def repeated_tail(flat: Flat, rows: Bools, key: Hashes) -> int:
    """Rows at the end of a step that repeat earlier rows of that step in order.

    Padding repeats the first rows (or the last one) to fill a batch. Counted are the longest tails
    that equal a stretch of rows before them, within the steps of this batch: of two rows or more
    with at least `FEWEST_TOKENS` kept tokens each, or of one row with `LONE_TOKENS`.

    Args:
        flat: the batch.
        rows: (B,) rows that count.
        key: (B,) hash of what each row holds.
    """
    step = flat.row_fact(flat.rows.step)
    counts = flat.per_row(flat.keep)
    found = 0
    for value in np.unique(step[rows]):
        index = np.flatnonzero(rows & (step == value))
        found += _tail(key[index].tolist(), counts[index].tolist())
    return found


def _tail(keys: list[int], counts: list[float]) -> int:
    """Longest tail that repeats a stretch before it; 0 if it is too short to mean anything."""
    n = len(keys)
    best = 0
    for source_end in range(n - 1):
        length = 0
        while (
            length <= source_end
            and n - 1 - length > source_end
            and keys[source_end - length] == keys[n - 1 - length]
            and counts[n - 1 - length] >= FEWEST_TOKENS
        ):
            length += 1
        best = max(best, length)
    return best if best > 1 or (best and counts[-1] >= LONE_TOKENS) else 0
