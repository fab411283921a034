"""One column by itself: on which grid its values lie, and do logged weights pile up at a cap?"""

from dataclasses import dataclass

import numpy as np

from m2po_lab.integrity.additive import Additive, Floats, Peak, peak
from m2po_lab.integrity.flat import Flat


@dataclass(frozen=True)
class Grid(Additive):
    """Kept values other than 0 of a column, and how many of them a narrow float represents exactly.

    A value in float32 lies on the bfloat16 grid by chance once in 65 536 times, on the float16 grid
    once in 8192.
    """

    n: int
    bfloat16: int
    float16: int


def grid(values: Floats) -> Grid:
    """Count the values of an array that lie on each grid."""
    some = values[values != 0.0]
    with np.errstate(over="ignore"):
        narrow = some.astype(np.float32)
        half = some.astype(np.float16)
    exact = narrow.astype(np.float64) == some
    brain = exact & ((narrow.view(np.uint32) & np.uint32(0xFFFF)) == 0)
    return Grid(int(some.size), int(brain.sum()), int((half.astype(np.float64) == some).sum()))


def grids(flat: Flat) -> dict[str, Grid]:
    """Grid counts of every log-prob column, kept tokens only."""
    return {name: grid(values[flat.keep]) for name, values in flat.logp.items()}


@dataclass(frozen=True)
class Weights(Additive):
    """Logged importance weights of kept tokens.

    Args:
        n: how many.
        top: the largest and how many equal it exactly.
        bottom: the negative of the smallest, and how many equal it exactly.
    """

    n: int
    top: Peak | None
    bottom: Peak | None


def weights(flat: Flat) -> Weights | None:
    """Pile-ups at both ends; None without a weights column."""
    values = flat.rows.weights
    if values is None:
        return None
    kept = values[flat.keep & np.isfinite(values)]
    return Weights(int(kept.size), peak(kept), peak(-kept))
