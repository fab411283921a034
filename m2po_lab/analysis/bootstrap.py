"""Bootstrap over rows whose weights come from a hash of the row id, so that intervals merge.

Every row falls into one of `BUCKETS` buckets by a hash of its id, and a replicate gives all rows of
a bucket one Poisson(1) weight, a pure function of (bucket, replicate). A cell keeps its sums a
bucket; sums add, and neither the order of rows nor the split over files can change an interval.
Below a few hundred rows nearly every row has a bucket of its own; above that it is the random-group
bootstrap, whose standard error is itself known to about 4 % (1 / sqrt(2 * 256)).
"""

import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from m2po_lab.analysis.bins import Bools, Floats, Ints

BUCKETS = 256
REPLICATES = 200
MIN_ROWS = 8
"""With fewer rows no interval is given."""
MIN_BUCKETS = 6
"""Nor with fewer buckets: 8 rows with ids of their own fill fewer with a chance of 4e-5."""
LEVELS = (0.025, 0.975)

Hashes = npt.NDArray[np.uint64]


def splitmix64(value: Hashes) -> Hashes:
    """Scramble 64-bit counters into uniform bits (Steele, Lea and Flood, OOPSLA 2014)."""
    z = value + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def hash_texts(texts: Sequence[str | None]) -> Hashes:
    """Hash strings to 64 bits, the same on every machine and in every process."""
    raw = np.fromiter(
        (zlib.crc32(t.encode("utf-8", "surrogatepass")) if t is not None else 0 for t in texts),
        dtype=np.uint64,
        count=len(texts),
    )
    return splitmix64(raw)


def bucket(row_hash: Hashes) -> Ints:
    """Return the bucket of each row, 0 to BUCKETS - 1."""
    return (splitmix64(row_hash) % np.uint64(BUCKETS)).astype(np.int64)


@cache
def poisson_weights() -> Floats:
    """Return the (BUCKETS, REPLICATES) Poisson(1) weights by inversion of hashed counters."""
    counter = np.arange(BUCKETS * REPLICATES, dtype=np.uint64) + np.uint64(1 << 32)
    uniform = (splitmix64(counter) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    steps = np.arange(20)
    mass = np.exp(-1.0) / np.cumprod(np.maximum(steps, 1))
    weight = np.searchsorted(np.cumsum(mass), uniform, side="right")
    return weight.reshape(BUCKETS, REPLICATES).astype(np.float64)


def replicates(cells: Any) -> tuple[Floats, Floats]:
    """Return M2 and the ESS fraction of every replicate, each (G, REPLICATES); NaN where empty.

    Args:
        cells: `Cells`, of which the sums a bucket are read.
    """
    weights = poisson_weights()
    n = cells.field("bucket_n").astype(np.float64) @ weights
    square = cells.field("bucket_square") @ weights
    first, second = cells.field("bucket_log_ratio"), cells.field("bucket_log_square")
    peak = np.max(first, axis=1, initial=-np.inf, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    ratio = np.exp(first - peak) @ weights
    ratio_square = np.exp(second - 2 * peak) @ weights
    with np.errstate(divide="ignore", invalid="ignore"):
        m2 = np.where(n > 0, square / n, np.nan)
        ess = np.where((n > 0) & (ratio_square > 0), ratio**2 / (n * ratio_square), np.nan)
    return m2, ess


def enough(cells: Any) -> Bools:
    """Return which cells, (G,), hold rows enough for an interval.

    Rows and buckets are both asked: rows that share a bucket by chance are still rows, while one
    response that many rows score again is a single cluster.
    """
    buckets = np.sum(cells.field("bucket_n") > 0, axis=1)
    return np.asarray((cells.field("rows") >= MIN_ROWS) & (buckets >= MIN_BUCKETS))


def intervals(cells: Any) -> tuple[Floats, Floats]:
    """Return the 95 % intervals of M2 and of the ESS fraction, each (G, 2).

    NaN for a cell with too few rows to say, see `enough`.
    """
    chosen = enough(cells)
    result = []
    for values in replicates(cells):
        bounds = np.full((values.shape[0], 2), np.nan)
        if np.any(chosen):
            bounds[chosen] = np.nanquantile(values[chosen], LEVELS, axis=1).T
        result.append(bounds)
    return result[0], result[1]
