"""The pass over tokens that fills a histogram of |d| by the bits of the float.

Codes are ((sign of A) * 2 + side of d) * bins + bin of |d|, see `histogram`.
"""

import numpy as np
import numpy.typing as npt

from m2po_lab.core.arrays import Array, namespace
from m2po_lab.core.host import Host, spans, to_host
from m2po_lab.core.kernels import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LOW_EXPONENT, HIGH_EXPONENT = -24, 16
"""Bins cover 2^-24 <= |d| < 2^16; what lies beyond shares one bin at each end."""
MANTISSA, BIAS = 52, 1023
MAGNITUDE = (1 << 63) - 1
DEVICE_CHUNK = 1 << 24


def n_bins(mantissa_bits: int) -> int:
    """Bins of |d|: zero, too small, regular ones, too large."""
    return 3 + (HIGH_EXPONENT - LOW_EXPONENT << mantissa_bits)


def first_regular(mantissa_bits: int) -> int:
    """Leading bits of the smallest regular |d|, less the two bins before it."""
    return (BIAS + LOW_EXPONENT << mantissa_bits) - 2


def bin_host(
    log_ratio: Array, keep: Array, advantage: Array | None, mantissa_bits: int
) -> tuple[Ints, Floats]:
    """Return per code the count, and the sums of d^2, |A| and A^2 as (3, codes)."""
    d, kept = _two_dimensional(to_host(log_ratio)), _two_dimensional(to_host(keep))
    a = None if advantage is None else _two_dimensional(to_host(advantage))
    codes = 6 * n_bins(mantissa_bits)
    count, sums = np.zeros(codes, dtype=np.int64), np.zeros((3, codes))
    compiled = kernel("histogram.add", kept.size)
    add = add_piece if compiled is None else compiled
    for _, index in spans(kept.shape):
        size = kept[index].size
        advantages = np.zeros(size if compiled else 0) if a is None else _float64(a[index])
        more, further = add(
            _float64(d[index]), np.ravel(kept[index]), advantages, a is not None, mantissa_bits
        )
        count += more
        sums += further
    return count, sums


def add_piece(
    d: Floats, keep: npt.NDArray[np.bool_], advantage: Floats, known: bool, mantissa_bits: int
) -> tuple[Ints, Floats]:
    """Bin one flat piece; `known` is False where there are no advantages to read."""
    bins = n_bins(mantissa_bits)
    codes = 6 * bins
    d = np.compress(keep, d)  # faster than d[keep]
    bits = d.view(np.int64) & MAGNITUDE
    code = (bits >> MANTISSA - mantissa_bits) - first_regular(mantissa_bits)
    np.clip(code, 1, bins - 1, out=code)
    code[bits == 0] = 0
    cell = (d > 0).astype(np.int64)
    sums = np.zeros((3, codes))
    if known:
        a = np.compress(keep, advantage)
        cell += 2 * (1 + (a > 0).astype(np.int64) - (a < 0))
        code += bins * cell
        sums[1] = np.bincount(code, weights=np.abs(a), minlength=codes)
        sums[2] = np.bincount(code, weights=a * a, minlength=codes)
    else:
        code += bins * (2 + cell)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        sums[0] = np.bincount(code, weights=d * d, minlength=codes)
    return np.bincount(code, minlength=codes), sums


def bin_device(
    log_ratio: Array, keep: Array, advantage: Array | None, mantissa_bits: int
) -> tuple[Ints, Floats]:
    """`bin_host` for torch tensors on an accelerator; waits for it once, at the end."""
    xp, device = namespace(log_ratio), log_ratio.device
    bins = n_bins(mantissa_bits)
    codes = 6 * bins
    # What is not kept goes to a code behind the last: selecting would wait for the device.
    count = xp.zeros(codes + 1, dtype=xp.int64, device=device)
    sums = xp.zeros((3, codes + 1), dtype=xp.float64, device=device)
    columns = [_flat_tensor(a) for a in (log_ratio, keep, advantage) if a is not None]
    for _, index in spans(tuple(columns[0].shape), DEVICE_CHUNK):
        kept, zero = columns[1][index], xp.zeros((), dtype=xp.float64, device=device)
        d = xp.where(kept, xp.astype(columns[0][index], xp.float64), zero)
        bits = d.view(xp.int64) & MAGNITUDE
        code = (bits >> MANTISSA - mantissa_bits) - first_regular(mantissa_bits)
        code = xp.where(bits == 0, xp.zeros_like(code), xp.clip(code, 1, bins - 1))
        cell = 2 + xp.astype(d > 0, xp.int64)
        if advantage is not None:
            a = xp.where(kept, xp.astype(columns[2][index], xp.float64), zero)
            cell = cell + 2 * (xp.astype(a > 0, xp.int64) - xp.astype(a < 0, xp.int64))
        code = xp.where(kept, code + bins * cell, xp.full_like(code, codes))
        count.index_add_(0, code, xp.ones_like(code))
        sums[0].index_add_(0, code, d * d)
        if advantage is not None:
            sums[1].index_add_(0, code, xp.abs(a))
            sums[2].index_add_(0, code, a * a)
    return to_host(count[:codes]), to_host(sums[:, :codes])


def _two_dimensional(values: Host) -> Host:
    """One or two axes, as `spans` cuts them; a view where it can be one."""
    return values if values.ndim in (1, 2) else np.reshape(values, (-1,))


def _float64(values: Host) -> Floats:
    return np.ravel(values).astype(np.float64, copy=False)


def _flat_tensor(values: Array) -> Array:
    return namespace(values).reshape(values.detach(), (-1,))
