"""Numbers behind two figures that no table holds: the histogram of d, and p against p.

They come from what the scan kept anyway: the histogram over the float's bits, and the sample of
tokens. Both are small: counts on fixed edges.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from m2po_lab.analysis import Analysis
from m2po_lab.analysis.bins import FINE, LOWEST_EXPONENT, QUADRANTS, magnitudes
from m2po_lab.core.batch import RATIOS

BITS = 1
"""Bins an octave of |d| is cut into, as a power of two."""
FIRST_OCTAVE, LAST_OCTAVE = -12, 5
"""The histogram shows |d| from 2^-12 to 2^5 nats; what lies above is in its end bins."""
CELLS = 40
CLASSES = {"A>0": (0, 1), "A<0": (2, 3), "A=0 or unknown": (4, len(QUADRANTS))}

Counts = npt.NDArray[np.int64]


def curves(analysis: Analysis) -> dict[str, Any]:
    """Return the data of both figures for the primary ratio; null where there is none."""
    primary = analysis.primary
    if primary is None:
        return {"log_ratio": None, "probability": None}
    return {"log_ratio": _log_ratio(analysis, primary), "probability": _both(analysis, primary)}


def _log_ratio(analysis: Analysis, ratio: str) -> dict[str, Any]:
    """Counts of d by sign of the advantage; the bin in the middle holds |d| < 2^FIRST_OCTAVE."""
    cells = analysis.ratios[ratio].cells["quadrant"]
    half = magnitudes(FINE)
    first = (FIRST_OCTAVE - LOWEST_EXPONENT) << BITS
    last = ((LAST_OCTAVE - LOWEST_EXPONENT) << BITS) - 1
    bins = np.minimum(np.arange(half) >> (FINE - BITS), last) - first
    n = last - first + 1
    size = np.maximum(bins + 1, 0)
    code = n + np.concatenate((-size[::-1], [0], size))
    counts = {}
    for name, keys in CLASSES.items():
        fine = cells.take(list(keys)).field("bins").sum(axis=0)
        counts[name] = np.bincount(code, weights=fine, minlength=2 * n + 1).astype(int).tolist()
    octave, part = np.divmod(np.arange(n + 1), 1 << BITS)
    edge = 2.0 ** (FIRST_OCTAVE + octave) * (1 + part / (1 << BITS))
    edges = np.concatenate((-edge[::-1], edge))
    return {"ratio": ratio, "edges": edges.tolist(), "counts": counts}


def _both(analysis: Analysis, ratio: str) -> dict[str, Any] | None:
    """Counts of tokens by probability under the denominator (x) and the numerator (y)."""
    chunk = analysis.sample.canonical()
    if chunk is None:
        return None
    top, bottom = (chunk.columns[name] for name in RATIOS[ratio])
    known = np.isfinite(top) & np.isfinite(bottom)
    x, y = (
        np.minimum((np.exp(np.minimum(p[known], 0.0)) * CELLS).astype(np.int64), CELLS - 1)
        for p in (bottom, top)
    )
    counts = np.bincount(x * CELLS + y, minlength=CELLS * CELLS)
    filled = np.flatnonzero(counts)
    return {
        "ratio": ratio,
        "edges": (np.arange(CELLS + 1) / CELLS).tolist(),
        "exact": analysis.sample.complete,
        "cells": [[int(i // CELLS), int(i % CELLS), int(counts[i])] for i in filled],
    }
