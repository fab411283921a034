"""Helpers for the selection tests: the literal algorithm, hostile inputs, ranks as threads."""

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from m2po_lab.core import TokenBatch
from tests.conftest import asarray

CASES = json.loads((Path(__file__).parents[1] / "data" / "m2po_cases.json").read_text())["cases"]

POOLS = (
    [0.1, 0.2, 0.5, -0.1, -0.2, 0.0, 1.0],
    [0.2],
    [0.2, -0.2, float(np.nextafter(0.2, 1))],
    [0.2 + i * 2.8e-17 for i in range(6)],
    [0.3, 1e-160, 5e-324, 1e-200, -1e3, 900.0, -1e-154],
    [float.fromhex("0x1.6a09e667f3bcdp+0"), 1.0, 2.0**-26, -(2.0**-27)],
)
"""Log-ratios that collide: ties, neighbours, sums that round, squares that underflow."""


@st.composite
def problems(draw):
    """Log-ratios, advantages, keep of shape (B, T), and a budget that is often hit exactly."""
    rows, width = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    size = rows * width
    pool = draw(st.sampled_from((*POOLS, None)))
    values = st.floats(-40, 40) if pool is None else st.sampled_from(pool)
    d = np.array(draw(st.lists(values, min_size=size, max_size=size))).reshape(rows, width)
    signs = st.sampled_from([1.0, 1.0, -1.0, 0.0])
    a = np.array(draw(st.lists(signs, min_size=size, max_size=size))).reshape(rows, width)
    keep = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    keep = keep.reshape(rows, width)
    square = (d * d).ravel()
    mean = math.fsum(square) / size
    near = draw(st.sampled_from(list(square)))
    budget = draw(
        st.sampled_from(
            [0.0, 5e-324, 0.04, mean, near, math.nextafter(near, 0), math.nextafter(near, 9e9)]
        )
    )
    return d, a, keep, budget


def batch_of(d, a, keep, xp=None, dtype="float64"):
    """A TokenBatch with these log-ratios exactly (behavior log-probs are 0)."""
    columns = {"current_logp": d, "behavior_logp": np.zeros_like(d), "advantage": a}
    if xp is None:
        return TokenBatch(**columns, keep=keep)
    made = {name: asarray(xp, values, dtype) for name, values in columns.items()}
    return TokenBatch(**made, keep=asarray(xp, keep, "bool"))


def region(d, a, keep):
    return keep & (((a > 0) & (d > 0)) | ((a < 0) & (d < 0)))


def naive(d, a, keep, budget):
    """Algorithm 1, literally: sort H by d^2, drop the largest while the float64 mean exceeds."""
    square, kept = (d * d).ravel(), keep.copy()
    inside = np.flatnonzero(region(d, a, keep).ravel())
    left = sorted(inside.tolist(), key=lambda i: (square[i], i))
    while left and math.fsum(square[left]) / len(left) > budget:
        kept.reshape(-1)[left.pop()] = False
    return kept


class AllReduce:
    """Sum over threads that stand for ranks; also keeps what travelled."""

    def __init__(self, ranks):
        self.ranks, self.barrier, self.sizes = ranks, threading.Barrier(ranks, timeout=60), []
        self.slots = [None] * ranks

    def of(self, rank):
        def reduce(array):
            self.slots[rank] = array
            self.barrier.wait()
            total = sum(np.asarray(a).astype(np.int64) for a in self.slots)
            if rank == 0:
                self.sizes.append(total.nbytes)
            self.barrier.wait()
            return total

        return reduce


def over_ranks(ranks, function):
    """Run function(rank, reduce) on every rank at once; results or exceptions, by rank."""
    shared = AllReduce(ranks)

    def guarded(rank):
        try:
            return function(rank, shared.of(rank))
        except ValueError as error:
            return error

    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(guarded, range(ranks))), shared
