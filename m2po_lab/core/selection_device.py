"""The passes of M2PO's selection on an accelerator: torch tensors stay where they are.

Same functions, same integers as `selection_scan`; only a tally, the keys of one bin, or the indices
of tied tokens come to the host. Sums are integer additions, so the order in which an accelerator
performs them is of no consequence.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from m2po_lab.core.arrays import Array, namespace
from m2po_lab.core.host import spans, to_host
from m2po_lab.core.radix import LIMB, LOW, SHIFT, Ints
from m2po_lab.core.selection_scan import TRASH, Columns

CHUNK = 1 << 24
"""Tokens a chunk: 128 MB of float64."""


def pieces(columns: Columns) -> Iterator[tuple[int, Array, Array, Array]]:
    """Yield (flat start, d in float64, region H, keep) a chunk, each flat."""
    xp = namespace(columns.top)
    for start, index in spans(tuple(columns.keep.shape), CHUNK):
        top, bottom, advantage, keep = (
            xp.reshape(a[index], (-1,))
            for a in (columns.top, columns.bottom, columns.advantage, columns.keep)
        )
        d = xp.astype(top, xp.float64) - xp.astype(bottom, xp.float64)
        region = keep & (((advantage > 0) & (d > 0)) | ((advantage < 0) & (d < 0)))
        yield start, d, region, keep


def tally(columns: Columns) -> Array:
    """Tally of `selection_scan.tally` as a tensor on the device; does not wait for it."""
    xp, device = namespace(columns.top), columns.top.device
    total = xp.zeros((3, TRASH + 1), dtype=xp.int64, device=device)
    bad = xp.zeros((), dtype=xp.int64, device=device)
    for _, d, region, keep in pieces(columns):
        bad = bad + xp.sum(xp.astype(keep & ~xp.isfinite(d), xp.int64))
        key = (d * d).view(xp.int64)
        # Tokens outside H go to the row behind the bins: selecting them would wait for the device.
        row = xp.where(region, key >> SHIFT, xp.full_like(key, TRASH))
        rest = key & ((1 << SHIFT) - 1)
        for line, values in enumerate((xp.ones_like(key), rest & LOW, rest >> LIMB)):
            total[line].index_add_(0, row, values)
    total[:, TRASH] = 0
    total[0, TRASH] = bad
    return total.T.contiguous()


def collect(columns: Columns, low: int, high: int) -> Ints:
    """Keys in [low, high) of the tokens of H, on the host."""
    found = []
    for _, d, region, _ in pieces(columns):
        key = (d * d).view(namespace(d).int64)
        found.append(to_host(key[region & (key >= low) & (key < high)]))
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def ties(columns: Columns, value: float) -> Ints:
    """Flat index, on the host, of every token of H whose d^2 equals value."""
    return _where(columns, lambda d, region, keep: region & (d * d == value))


def non_finite(columns: Columns) -> Ints:
    """Flat index, on the host, of every kept token whose log-ratio is NaN or infinite."""
    return _where(columns, lambda d, region, keep: keep & ~namespace(d).isfinite(d))


def mark(columns: Columns, value: float) -> Array:
    """Kept tokens but those of H with d^2 > value, in the columns' shape."""
    xp = namespace(columns.top)
    kept = [keep & ~(region & (d * d > value)) for _, d, region, keep in pieces(columns)]
    if not kept:
        return xp.zeros(columns.keep.shape, dtype=xp.bool, device=columns.keep.device)
    return xp.reshape(xp.concat(kept), columns.keep.shape)


def _where(columns: Columns, condition: Any) -> Ints:
    found = []
    for start, d, region, keep in pieces(columns):
        (index,) = namespace(d).nonzero(condition(d, region, keep))
        found.append(start + to_host(index))
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
