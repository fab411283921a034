"""Order-independent identities: 64-bit hashes of rows and prompts, the same in every process."""

import hashlib

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix(values: Hashes) -> Hashes:
    """Scramble 64-bit words (the finalizer of splitmix64)."""
    with np.errstate(over="ignore"):
        z = values + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)), dtype=np.uint64)


def bytes_hash(data: bytes) -> int:
    """64-bit hash of a byte string; 0 only for the empty one."""
    if not data:
        return 0
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little") or 1


def row_hashes(columns: dict[str, NDArray[np.generic]], lengths: NDArray[np.int64]) -> Hashes:
    """Hash every row of a ragged batch: (N,) columns -> (B,).

    A row's hash depends on the names, values and positions in its row, not on the batch around it.
    NaN of any payload count as one value.
    """
    n_rows, n = len(lengths), int(lengths.sum())
    total = mix(lengths.astype(np.uint64))
    starts = np.cumsum(lengths) - lengths
    position = mix((np.arange(n) - np.repeat(starts, lengths)).astype(np.uint64))
    full = np.flatnonzero(lengths > 0)
    for name, values in columns.items():
        salt = np.uint64(bytes_hash(name.encode()))
        with np.errstate(over="ignore"):
            tokens = mix(_bits(values) + mix(position ^ salt))
            sums = np.zeros(n_rows, dtype=np.uint64)
            if n:
                sums[full] = np.add.reduceat(tokens, starts[full])
            total = mix(total ^ sums)
    return total


def _bits(values: NDArray[np.generic]) -> Hashes:
    """Values as 64-bit words, equal values to equal words."""
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            wide = values.astype(np.float64)
        wide[np.isnan(wide)] = np.nan
        return wide.view(np.uint64)
    return values.astype(np.int64).view(np.uint64)
