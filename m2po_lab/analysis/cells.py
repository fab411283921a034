"""Cells: everything one table of the report needs, for many groups at once, and mergeable.

A cell is core `Sums`, a histogram over the float's bits of d, the largest |d| and the largest d,
and the sums a bootstrap bucket. A cell of 256 largest values and 5 mantissa bits takes about 33 kB.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from m2po_lab.analysis.bins import Array, Ints, magnitudes
from m2po_lab.analysis.bootstrap import BUCKETS
from m2po_lab.analysis.keyed import COUNT, HIGHEST, LOG_TOTAL, LOWEST, TOTAL, Column, Keyed
from m2po_lab.core.moments import Sums

SUM_COLUMNS = {
    "n": COUNT,
    "rows": COUNT,
    "log_ratio": TOTAL,
    "square": TOTAL,
    "absolute": TOTAL,
    "k3": TOTAL,
    "ratio_excess": TOTAL,
    "square_excess": TOTAL,
    "log_ratio_sum": LOG_TOTAL,
    "log_square_sum": LOG_TOTAL,
    "low": LOWEST,
    "high": HIGHEST,
}
"""The fields of core `Sums`."""
BUCKET_COLUMNS = {
    "bucket_n": Column(0, np.add, np.int64, BUCKETS),
    "bucket_square": Column(0.0, np.add, width=BUCKETS),
    "bucket_log_ratio": Column(-np.inf, np.logaddexp, width=BUCKETS),
    "bucket_log_square": Column(-np.inf, np.logaddexp, width=BUCKETS),
}


def merge_top(first: Array, second: Array) -> Array:
    """Return the largest values of each row of two (G, k) arrays, descending."""
    size = first.shape[1]
    return -np.sort(-np.concatenate((first, second), axis=1), axis=1)[:, :size]


class Cells(Keyed):
    """Cells of one table, one per key (a step, a lag, a bin, a quadrant code).

    Attributes:
        mantissa_bits: resolution of the histogram, see `bins`.
        size: how many largest values a cell keeps, descending, -inf where there are fewer.
    """

    def __init__(self, mantissa_bits: int, size: int, keys: Sequence[int] = ()) -> None:
        self.mantissa_bits, self.size = mantissa_bits, size
        top = Column(-np.inf, merge_top, width=size)
        bins = Column(0, np.add, np.int64, 2 * magnitudes(mantissa_bits) + 1)
        schema = SUM_COLUMNS | BUCKET_COLUMNS | {"bins": bins, "top": top, "top_abs": top}
        super().__init__(schema, keys)

    def empty(self, keys: Sequence[Any] = ()) -> Self:
        """Return cells of the same resolution with the given keys, all empty."""
        return type(self)(self.mantissa_bits, self.size, keys)

    @property
    def sums(self) -> Sums:
        """Batched core sums, one entry a cell."""
        return Sums(**{name: self.field(name) for name in SUM_COLUMNS})

    def smallest(self, name: str, keys: Sequence[int]) -> Array:
        """Return the smallest of the largest values kept (`name`) of each key, -inf if few."""
        at = [self._index.get(key) for key in keys]
        last = self.columns[name][:, -1]
        return np.asarray([-np.inf if i is None else last[i] for i in at])

    def union(self, keys: Sequence[int]) -> "Cells":
        """Return one cell, key 0, that holds the tokens of all given keys.

        `rows` adds up, so a row with tokens in two of the cells counts twice: the caller sets it.
        """
        merged = self.empty([0])
        for key in keys:
            part = self.take([key])
            merged.add([0], part.columns)
        return merged


def codes_of(keys: Ints) -> tuple[list[int], Ints]:
    """Return the distinct keys, ascending, and each element's index among them."""
    if keys.size == 0:
        return [], keys
    low, high = int(keys.min()), int(keys.max())
    if high - low < 1 << 16:
        code = keys - low
        present = np.flatnonzero(np.bincount(code))
        if present.size == high - low + 1:
            return (present + low).tolist(), code
        table = np.zeros(high - low + 1, dtype=np.int64)
        table[present] = np.arange(present.size)
        return (present + low).tolist(), table[code]
    distinct, code = np.unique(keys, return_inverse=True)
    return distinct.tolist(), code.reshape(-1)
