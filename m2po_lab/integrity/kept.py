"""The kept tokens of a batch, compressed: what measures run over, row by row."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from m2po_lab.core.batch import RATIOS
from m2po_lab.integrity.additive import Bools, Floats, Ints
from m2po_lab.integrity.flat import Flat


@dataclass(frozen=True, eq=False)
class Kept:
    """n kept tokens, rows ascending.

    Args:
        flat: the batch they come from.
    """

    flat: Flat

    @cached_property
    def index(self) -> Ints:
        """(n,) where each stands in the batch."""
        return np.flatnonzero(self.flat.keep)

    @cached_property
    def row(self) -> Ints:
        """(n,) row of each."""
        return self.flat.row[self.index]

    @cached_property
    def position(self) -> Ints:
        """(n,) position of each in its row."""
        return self.flat.position[self.index]

    @cached_property
    def lag(self) -> Ints:
        """(n,) lag of each, UNKNOWN where it is."""
        return self.flat.lag[self.index]

    @cached_property
    def stratum(self) -> Ints:
        """(n,) 0 for tokens of lag 0, 1 for any other or unknown lag."""
        return np.asarray(self.lag != 0).astype(np.int64)

    @cached_property
    def logp(self) -> dict[str, Floats]:
        """Column -> (n,) log-probs."""
        return {name: values[self.index] for name, values in self.flat.logp.items()}

    @cached_property
    def advantage(self) -> Floats | None:
        """(n,) advantages, or None."""
        return None if self.flat.advantage is None else self.flat.advantage[self.index]

    @cached_property
    def log_ratios(self) -> dict[str, Floats]:
        """Ratio -> (n,) d in nats."""
        pairs = {ratio: RATIOS[ratio] for ratio in self.flat.ratios()}
        return {r: self.logp[top] - self.logp[bottom] for r, (top, bottom) in pairs.items()}

    @cached_property
    def starts(self) -> Ints:
        """First kept token of each row that has one."""
        return np.flatnonzero(np.append(True, self.row[1:] != self.row[:-1])[: self.row.size])

    @cached_property
    def counts(self) -> Floats:
        """(B,) kept tokens of each row."""
        return self.per_row(np.ones(self.index.size))

    def per_row(self, values: Floats | Bools) -> Floats:
        """Sum over the kept tokens of each row: (n,) -> (B,) float64, 0 for rows without any."""
        sums = np.zeros(self.flat.n_rows)
        if values.size:
            sums[self.row[self.starts]] = np.add.reduceat(values, self.starts, dtype=np.float64)
        return sums
