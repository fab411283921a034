"""Cells: everything one table of the report needs, for many groups at once, and mergeable.

A cell is core `Sums`, a histogram over the float's bits of d, the largest |d| and the largest d,
and the sums a bootstrap bucket. All cells of a table are kept column by column, so that merging and
finishing a thousand steps is a handful of array operations. A cell of 256 largest values and 5
mantissa bits takes about 33 kB.
"""

from dataclasses import dataclass, field

import numpy as np

from m2po_lab.analysis.bins import Array, Ints, magnitudes
from m2po_lab.analysis.bootstrap import BUCKETS
from m2po_lab.core.moments import Sums

SUM_FIELDS = {
    "n": (np.int64, 0, np.add),
    "rows": (np.int64, 0, np.add),
    "log_ratio": (np.float64, 0.0, np.add),
    "square": (np.float64, 0.0, np.add),
    "absolute": (np.float64, 0.0, np.add),
    "k3": (np.float64, 0.0, np.add),
    "ratio_excess": (np.float64, 0.0, np.add),
    "square_excess": (np.float64, 0.0, np.add),
    "log_ratio_sum": (np.float64, -np.inf, np.logaddexp),
    "log_square_sum": (np.float64, -np.inf, np.logaddexp),
    "low": (np.float64, np.inf, np.minimum),
    "high": (np.float64, -np.inf, np.maximum),
}
"""Fields of `Sums`: type, value of the empty set, and how two sets combine."""
WIDE_FIELDS = {
    "bins": (np.int64, 0, np.add),
    "bucket_n": (np.int64, 0, np.add),
    "bucket_square": (np.float64, 0.0, np.add),
    "bucket_log_ratio": (np.float64, -np.inf, np.logaddexp),
    "bucket_log_square": (np.float64, -np.inf, np.logaddexp),
}
TOP_FIELDS = ("top", "top_abs")
"""The largest d and the largest |d| of each cell, descending, -inf where there are fewer."""


def merge_top(first: Array, second: Array) -> Array:
    """Return the largest values of each row of two (G, k) arrays, descending."""
    size = first.shape[1]
    return -np.sort(-np.concatenate((first, second), axis=1), axis=1)[:, :size]


@dataclass(eq=False)
class Cells:
    """Cells of one table, one per key; `absorb` adds another table's cells to these.

    Attributes:
        mantissa_bits: resolution of the histogram, see `bins`.
        size: how many largest values a cell keeps.
        keys: what each cell is about (a step, a lag, a bin, a quadrant code), in order of arrival.
        columns: field -> array whose first axis goes over cells; it may be longer than `keys`.
    """

    mantissa_bits: int
    size: int
    keys: list[int] = field(default_factory=list)
    columns: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make room for the keys given."""
        self._index = {key: i for i, key in enumerate(self.keys)}
        if not self.columns:
            self._grow(max(1, len(self.keys)))

    def _blank(self, rows: int) -> dict[str, Array]:
        widths = dict.fromkeys(WIDE_FIELDS, (BUCKETS,))
        widths["bins"] = (2 * magnitudes(self.mantissa_bits) + 1,)
        blank = {n: np.full((rows,), v, dtype=t) for n, (t, v, _) in SUM_FIELDS.items()}
        for name, (kind, value, _) in WIDE_FIELDS.items():
            blank[name] = np.full((rows, *widths[name]), value, dtype=kind)
        for name in TOP_FIELDS:
            blank[name] = np.full((rows, self.size), -np.inf)
        return blank

    def _grow(self, rows: int) -> None:
        """Double the room until `rows` cells fit."""
        room = len(self.columns["n"]) if self.columns else 0
        if rows <= room:
            return
        blank = self._blank(max(rows, 2 * room) - room)
        if not self.columns:
            self.columns = blank
        else:
            self.columns = {n: np.concatenate((c, blank[n])) for n, c in self.columns.items()}

    def __len__(self) -> int:
        """How many cells there are."""
        return len(self.keys)

    def field(self, name: str) -> Array:
        """Return one column, one entry a cell in the order of `keys`."""
        return self.columns[name][: len(self.keys)]

    @property
    def sums(self) -> Sums:
        """Batched core sums, one entry a cell."""
        return Sums(**{name: self.field(name) for name in SUM_FIELDS})

    def absorb(self, other: "Cells") -> None:
        """Add the tokens of another table to this one; groups not seen before are appended.

        Raises:
            ValueError: the two tables have another resolution.
        """
        if (self.mantissa_bits, self.size) != (other.mantissa_bits, other.size):
            raise ValueError(
                f"cells of {self.mantissa_bits} bits and {self.size} largest do not merge with "
                f"{other.mantissa_bits} bits and {other.size}; scan both with the same options"
            )
        for key in other.keys:
            if key not in self._index:
                self._index[key] = len(self.keys)
                self.keys.append(key)
        self._grow(len(self.keys))
        at = np.asarray([self._index[key] for key in other.keys], dtype=np.int64)
        for name, (_, _, combine) in (SUM_FIELDS | WIDE_FIELDS).items():
            column = self.columns[name]
            column[at] = combine(column[at], other.field(name))
        for name in TOP_FIELDS:
            column = self.columns[name]
            column[at] = merge_top(column[at], other.field(name))

    def copy(self) -> "Cells":
        """Return cells that share nothing with these."""
        columns = {name: self.field(name).copy() for name in self.columns}
        return Cells(self.mantissa_bits, self.size, list(self.keys), columns if self.keys else {})

    def take(self, keys: list[int]) -> "Cells":
        """Return the cells of some keys; a key that never occurred gives an empty cell."""
        taken = Cells(self.mantissa_bits, self.size, list(keys))
        known = [key for key in keys if key in self._index]
        at = [self._index[key] for key in known]
        to = [taken._index[key] for key in known]
        for name, column in self.columns.items():
            taken.columns[name][to] = column[at]
        return taken

    def union(self, keys: list[int]) -> "Cells":
        """Return one cell, key 0, that holds the tokens of all given keys.

        `rows` adds up, so a row with tokens in two of the cells counts twice: the caller sets it.
        """
        merged = Cells(self.mantissa_bits, self.size, [0])
        for key in keys:
            part = self.take([key])
            part.keys, part._index = [0], {0: 0}
            merged.absorb(part)
        return merged

    def sorted_keys(self) -> list[int]:
        """Keys in ascending order."""
        return sorted(self.keys)


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
