"""Version bookkeeping: can the lags be right, and does a row have one?"""

from dataclasses import dataclass

import numpy as np

from m2po_lab.integrity.additive import Additive
from m2po_lab.integrity.faults import Examples, examples
from m2po_lab.integrity.flat import Flat
from m2po_lab.logs.rows import UNKNOWN


@dataclass(frozen=True)
class Versions(Additive):
    """Counts over kept tokens and rows.

    Args:
        tokens: kept tokens.
        known: those with a known lag.
        negative: those with a version newer than the trainer's.
        negative_rows: rows with such a token.
        rows: rows with a kept token and versions.
        mixed: rows whose kept tokens come from several versions.
        examples: first tokens with a negative lag.
    """

    tokens: int
    known: int
    negative: int
    negative_rows: int
    rows: int
    mixed: int
    examples: Examples


def versions(flat: Flat) -> Versions:
    """Count a batch."""
    known = flat.keep & (flat.lag != UNKNOWN)
    negative = np.flatnonzero(known & (flat.lag < 0))
    low, high = _version_span(flat)
    return Versions(
        tokens=int(flat.keep.sum()),
        known=int(known.sum()),
        negative=int(negative.size),
        negative_rows=int(np.unique(flat.row[negative]).size),
        rows=int((high >= 0).sum()),
        mixed=int(((high >= 0) & (low < high)).sum()),
        examples=examples(flat, negative, "version", None),
    )


def _version_span(flat: Flat) -> tuple[np.ndarray, np.ndarray]:
    """(B,) smallest and largest known version over kept tokens; -1 where there is none."""
    low, high = (np.full(flat.n_rows, -1, dtype=np.int64) for _ in range(2))
    if flat.version is None:
        return low, high
    index = np.flatnonzero(flat.keep & (flat.version >= 0))
    if index.size:
        row, version = flat.row[index], flat.version[index]
        start = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
        low[row[start]] = np.minimum.reduceat(version, start)
        high[row[start]] = np.maximum.reduceat(version, start)
    return low, high
