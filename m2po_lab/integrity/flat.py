"""A batch as flat numpy arrays, whatever its layout: what every check reads."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from m2po_lab.core.arrays import float64
from m2po_lab.core.batch import LOGP_FIELDS, RATIOS, TokenBatch
from m2po_lab.integrity.additive import Bools, Floats, Ints
from m2po_lab.logs.rows import UNKNOWN, Rows


@dataclass(frozen=True, eq=False)
class Flat:
    """N tokens of B rows, one row after the other.

    Args:
        lengths: (B,) tokens of each row, masked ones included.
        keep: (N,) which tokens count.
        logp: column -> (N,) log-probs; only the columns that are there.
        advantage, entropy: (N,) float64 or None.
        version: (N,) weight version that sampled the token, negative where unknown, or None.
        rows: what the log says about each row.
    """

    lengths: Ints
    keep: Bools
    logp: dict[str, Floats]
    advantage: Floats | None
    entropy: Floats | None
    version: Ints | None
    rows: Rows

    @property
    def n_rows(self) -> int:
        """Rows, empty ones included."""
        return int(self.lengths.shape[0])

    @cached_property
    def starts(self) -> Ints:
        """(B,) index of the first token of each row."""
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def row(self) -> Ints:
        """(N,) row of each token."""
        return np.repeat(np.arange(self.n_rows, dtype=np.int64), self.lengths)

    @cached_property
    def position(self) -> Ints:
        """(N,) position of each token in its row."""
        return np.arange(self.keep.shape[0], dtype=np.int64) - np.repeat(self.starts, self.lengths)

    def per_row(self, values: Floats | Bools | Ints) -> Floats:
        """Sum per-token values over all tokens of each row: (N,) -> (B,) float64."""
        sums = np.bincount(self.row, weights=values, minlength=self.n_rows)
        return sums.astype(np.float64, copy=False)

    def row_fact(self, values: Ints | None) -> Ints:
        """A per-row integer column, UNKNOWN everywhere if the log has none."""
        return np.full(self.n_rows, UNKNOWN, dtype=np.int64) if values is None else values

    @cached_property
    def lag(self) -> Ints:
        """(N,) train_version - version; UNKNOWN where either is unknown."""
        unknown = np.full(self.keep.shape, UNKNOWN, dtype=np.int64)
        if self.version is None or self.rows.train_version is None:
            return unknown
        trained = np.repeat(self.rows.train_version, self.lengths)
        known = (self.version >= 0) & (trained != UNKNOWN)
        return np.where(known, trained - np.where(known, self.version, 0), unknown)

    @cached_property
    def row_lag(self) -> tuple[Ints, Ints]:
        """(B,) smallest and largest lag over kept tokens; UNKNOWN where one of them is, or none."""
        low, high = (np.full(self.n_rows, UNKNOWN, dtype=np.int64) for _ in range(2))
        index = np.flatnonzero(self.keep)
        if index.size:
            row, lag = self.row[index], self.lag[index]
            start = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
            low[row[start]] = np.minimum.reduceat(lag, start)
            high[row[start]] = np.maximum.reduceat(lag, start)
        return low, np.where(low == UNKNOWN, UNKNOWN, high)

    def ratios(self) -> tuple[str, ...]:
        """Ratios whose two columns are present."""
        return tuple(n for n, (a, b) in RATIOS.items() if a in self.logp and b in self.logp)

    def log_ratio(self, ratio: str) -> Floats:
        """(N,) d in nats, 0 where not kept."""
        top, bottom = RATIOS[ratio]
        with np.errstate(invalid="ignore"):
            return np.where(self.keep, self.logp[top] - self.logp[bottom], 0.0)

    def kept(self, keep: Bools) -> "Flat":
        """The same tokens with another keep."""
        return replace(self, keep=keep)


def flatten(batch: TokenBatch) -> Flat:
    """Lay a batch out flat; a padded one becomes rows of equal length."""
    if batch.lengths is None:
        rows, width = batch.shape
        lengths = np.full(rows, width, dtype=np.int64)
    else:
        lengths = np.asarray(batch.lengths, dtype=np.int64)

    def floats(name: str) -> Floats | None:
        values = vars(batch)[name]
        return None if values is None else np.asarray(float64(values)).reshape(-1)

    columns = {name: values for name in LOGP_FIELDS if (values := floats(name)) is not None}
    version = None
    if batch.version is not None:
        version = np.asarray(batch.version).reshape(-1).astype(np.int64)
    return Flat(
        lengths=lengths,
        keep=np.asarray(batch.keep).reshape(-1),
        logp=columns,
        advantage=floats("advantage"),
        entropy=floats("entropy"),
        version=version,
        rows=batch.rows if batch.rows is not None else Rows(),
    )
