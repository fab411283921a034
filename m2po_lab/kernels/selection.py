"""Compiled passes of M2PO's selection; numpy twins are in `m2po_lab.core.selection_scan`.

The loops have no branch on the data: half of all tokens lie in H at random, and a mispredicted
branch costs more than the work it skips.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from m2po_lab.core.radix import BITS, LIMB, LOW, SHIFT
from m2po_lab.kernels.bits import bits_of, compiled

TRASH = 1 << BITS
REST = (1 << SHIFT) - 1
Floats = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@compiled
def tally(top: Floats, bottom: Floats, advantage: Floats, keep: Bools, total: Ints) -> int:
    """Add the squares of H to a tally; returns the number of kept tokens with non-finite d."""
    bad = 0
    for i in range(top.size):
        d = np.float64(top[i]) - np.float64(bottom[i])
        a = advantage[i]
        region = keep[i] & (((a > 0) & (d > 0)) | ((a < 0) & (d < 0)))
        bad += keep[i] & (d - d != 0)
        key = bits_of(d * d)
        row = (key >> SHIFT) if region else TRASH
        total[row, 0] += 1
        total[row, 1] += key & LOW
        total[row, 2] += (key & REST) >> LIMB
    return bad


@compiled
def collect(
    top: Floats, bottom: Floats, advantage: Floats, keep: Bools, low: int, high: int
) -> Ints:
    """Keys (bits of d^2) in [low, high) of the tokens of H, in their order."""
    found = np.empty(top.size, dtype=np.int64)
    n = 0
    for i in range(top.size):
        d = np.float64(top[i]) - np.float64(bottom[i])
        key = bits_of(d * d)
        if (key >= low) & (key < high):
            a = advantage[i]
            region = keep[i] & (((a > 0) & (d > 0)) | ((a < 0) & (d < 0)))
            found[n] = key
            n += region
    return found[:n].copy()


@compiled
def mark(
    top: Floats, bottom: Floats, advantage: Floats, keep: Bools, value: float, out: Bools
) -> None:
    """Write the keep mask: everything kept but the tokens of H with d^2 > value."""
    for i in range(top.size):
        d = np.float64(top[i]) - np.float64(bottom[i])
        a = advantage[i]
        region = ((a > 0) & (d > 0)) | ((a < 0) & (d < 0))
        out[i] = keep[i] & (not (region & (d * d > value)))
