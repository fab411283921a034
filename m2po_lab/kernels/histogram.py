"""Compiled pass of the histogram; its numpy twin is `m2po_lab.core.binning.add_piece`."""

from typing import Any

import numpy as np
import numpy.typing as npt

from m2po_lab.core.binning import BIAS, HIGH_EXPONENT, LOW_EXPONENT, MAGNITUDE, MANTISSA
from m2po_lab.kernels.bits import bits_of, compiled


@compiled
def add(
    d: npt.NDArray[np.float64],
    keep: npt.NDArray[np.bool_],
    advantage: npt.NDArray[np.float64],
    known: bool,
    mantissa_bits: int,
) -> tuple[Any, Any]:
    """Bin one flat piece; `known` is False where `advantage` is to be taken as unknown."""
    bins = 3 + ((HIGH_EXPONENT - LOW_EXPONENT) << mantissa_bits)
    first = ((BIAS + LOW_EXPONENT) << mantissa_bits) - 2
    shift = MANTISSA - mantissa_bits
    # One more code behind the last takes what is not kept, so that the loop has no branch.
    total = np.zeros((6 * bins + 1, 3), dtype=np.float64)
    count = np.zeros(6 * bins + 1, dtype=np.int64)
    for i in range(d.size):
        bits = bits_of(d[i]) & MAGNITUDE
        bin_of = min(max((bits >> shift) - first, 1), bins - 1) * (bits != 0)
        a = advantage[i] if known else 0.0
        cell = 2 * (1 + (a > 0) - (a < 0)) + (d[i] > 0)
        code = cell * bins + bin_of if keep[i] else 6 * bins
        count[code] += 1
        total[code, 0] += d[i] * d[i]
        total[code, 1] += abs(a)
        total[code, 2] += a * a
    return count[: 6 * bins], np.ascontiguousarray(total[: 6 * bins].T)
