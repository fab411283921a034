"""Keyed: a table that maps keys (a step, a lag, a group) to columns of additive values."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from m2po_lab.analysis.bins import Array, Ints


@dataclass(frozen=True)
class Column:
    """One additive value of every key.

    Attributes:
        start: value of the empty set.
        combine: how two sets combine, on arrays whose first axis goes over keys.
        dtype: type of the array.
        width: entries a key, or None for one number.
    """

    start: float
    combine: Callable[[Array, Array], Array]
    dtype: Any = np.float64
    width: int | None = None

    def blank(self, rows: int) -> Array:
        """Return the values of `rows` empty sets."""
        shape = (rows,) if self.width is None else (rows, self.width)
        return np.full(shape, self.start, dtype=self.dtype)


COUNT = Column(0, np.add, np.int64)
TOTAL = Column(0.0, np.add)
LOG_TOTAL = Column(-np.inf, np.logaddexp)
LOWEST = Column(np.inf, np.minimum)
HIGHEST = Column(-np.inf, np.maximum)


class Keyed:
    """Columns of additive values by key; `absorb` adds another table, key by key.

    All keys are kept column by column, so that merging a thousand of them is a handful of array
    operations; room is doubled as keys arrive.
    """

    def __init__(self, schema: Mapping[str, Column], keys: Sequence[Hashable] = ()) -> None:
        self.schema = dict(schema)
        self.keys: list[Any] = list(keys)
        self._index = {key: i for i, key in enumerate(self.keys)}
        self.columns = {n: c.blank(max(1, len(self.keys))) for n, c in self.schema.items()}

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self.keys)

    def __contains__(self, key: Hashable) -> bool:
        """Whether the key ever occurred."""
        return key in self._index

    def field(self, name: str) -> Array:
        """Return one column, one entry a key in the order of `keys`."""
        return self.columns[name][: len(self.keys)]

    def positions(self, keys: Sequence[Hashable]) -> Ints:
        """Return where the keys stand; keys not seen before are appended as empty sets."""
        for key in keys:
            if key not in self._index:
                self._index[key] = len(self.keys)
                self.keys.append(key)
        room = len(next(iter(self.columns.values())))
        if len(self.keys) > room:
            more = max(len(self.keys), 2 * room) - room
            self.columns = {
                n: np.concatenate((self.columns[n], c.blank(more))) for n, c in self.schema.items()
            }
        return np.asarray([self._index[key] for key in keys], dtype=np.int64)

    def add(self, keys: Sequence[Hashable], values: Mapping[str, Array]) -> None:
        """Combine values into the sets of distinct keys; a column that is not given stays."""
        at = self.positions(keys)
        for name, value in values.items():
            column = self.columns[name]
            column[at] = self.schema[name].combine(column[at], value)

    def absorb(self, other: "Keyed") -> None:
        """Add another table to this one.

        Raises:
            ValueError: its columns differ.
        """
        if self.schema != other.schema:
            raise ValueError(
                "tables with other columns or another resolution do not merge; "
                "scan both logs with the same options"
            )
        self.add(other.keys, {name: other.field(name) for name in other.schema})

    def empty(self, keys: Sequence[Hashable] = ()) -> Self:
        """Return a table with the same columns and the given keys, all empty."""
        return type(self)(self.schema, keys)

    def take(self, keys: Sequence[Hashable]) -> Self:
        """Return the table of some keys; a key that never occurred is an empty set."""
        taken = self.empty(keys)
        known = [key for key in keys if key in self._index]
        if known:
            at = [self._index[key] for key in known]
            taken.add(known, {name: column[at] for name, column in self.columns.items()})
        return taken

    def copy(self) -> Self:
        """Return a table that shares nothing with this one."""
        return self.take(list(self.keys))

    def sorted_keys(self) -> list[Any]:
        """Keys in ascending order."""
        return sorted(self.keys)
