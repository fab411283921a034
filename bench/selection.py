"""Benchmark of M2PO's threshold against the way the field computes it, in one process.

The field sorts all squares in descending order, takes the cumulative mean of what is left, and
restores the order (AReaL, Trinity-RFT, ms-swift, SkyRL). Here the threshold is found with a
histogram over the float's bits. Both work on the same float32 log-probs and advantages. A second
table has mini-batches of a few tokens, where the threshold is found by sorting: the two ways side
by side, which give the same boundary.

    python bench/selection.py                    16 million tokens
    python bench/selection.py --tokens 1000000 --json results.json
"""

import argparse
import importlib.util
import json
import platform
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.exact import Budget
from m2po_lab.core.host import CHUNK
from m2po_lab.core.kernels import kernels_enabled, load_kernel, use_kernels
from m2po_lab.core.selection import keep_m2po, solve_threshold
from m2po_lab.core.selection_keys import FEW, Sorted, Tallied
from m2po_lab.core.selection_parts import parts_of, reducer

BUDGET = 0.04
SMALL = (64, 640, 6400, FEW, 4 * FEW)
"""Tokens of the small mini-batches."""
KERNELS = ("selection.tally", "selection.collect", "selection.mark")


def tokens(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return behavior and current log-probs (Student-t3 x .3 apart) and advantages, float32."""
    rng = np.random.default_rng(seed)
    behavior = -rng.exponential(1.0, n).astype(np.float32)
    current = behavior + (0.3 * rng.standard_t(3, n)).astype(np.float32)
    return behavior, current, rng.standard_normal(n).astype(np.float32)


def flat_batch(behavior: np.ndarray, current: np.ndarray, advantage: np.ndarray) -> TokenBatch:
    """Return one ragged row of tokens."""
    return TokenBatch(
        behavior_logp=behavior,
        current_logp=current,
        advantage=advantage,
        lengths=np.array([behavior.shape[0]]),
    )


def sort_numpy(behavior: np.ndarray, current: np.ndarray, advantage: np.ndarray) -> np.ndarray:
    """Sort every valid token in descending order, cumulative mean, restore: with numpy."""
    d = current - behavior
    square = np.where(_region(d, advantage), d * d, np.float32(0))
    order = np.argsort(-square)
    restore = np.argsort(order)
    left = np.cumsum(square[order][::-1], dtype=np.float64)[::-1]
    n = np.count_nonzero(square)
    fits = left / np.maximum(np.arange(n, n - square.shape[0], -1), 1) <= BUDGET
    keep = np.ones(square.shape[0], dtype=bool)
    keep[: int(np.argmax(fits))] = False
    return keep[restore]


def sort_torch(behavior: Any, current: Any, advantage: Any) -> Any:
    """Do the same with torch, as the frameworks do."""
    import torch

    d = current - behavior
    region = ((advantage > 0) & (d > 0)) | ((advantage < 0) & (d < 0))
    square = torch.where(region, d * d, 0)
    ordered, order = torch.sort(square, descending=True)
    restore = torch.argsort(order)
    left = ordered.flip(0).cumsum(0, dtype=torch.float64).flip(0)
    n = int(torch.count_nonzero(square))
    fits = left / torch.arange(n, n - square.shape[0], -1).clamp(min=1) <= BUDGET
    keep = torch.ones(square.shape[0], dtype=torch.bool)
    keep[: int(torch.argmax(fits.to(torch.int8)))] = False
    return keep[restore]


def loop_python(behavior: np.ndarray, current: np.ndarray, advantage: np.ndarray) -> list[bool]:
    """Look at one token after the other in Python; returns the mask."""
    keep, squares = [True] * behavior.shape[0], []
    for i, (b, c, a) in enumerate(zip(behavior, current, advantage, strict=True)):
        d = float(c) - float(b)
        if (a > 0 and d > 0) or (a < 0 and d < 0):
            squares.append((d * d, i))
    squares.sort()
    total = sum(square for square, _ in squares)
    while squares and total / len(squares) > BUDGET:
        square, i = squares.pop()
        total -= square
        keep[i] = False
    return keep


def _region(d: np.ndarray, advantage: np.ndarray) -> np.ndarray:
    return ((advantage > 0) & (d > 0)) | ((advantage < 0) & (d < 0))


def best(function: Callable[[], Any], repeats: int) -> float:
    """Return the shortest of several runs, in seconds."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def peak_bytes(function: Callable[[], Any]) -> int:
    """Return the most memory that numpy and Python held at once while it ran, beyond before."""
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def small(sizes: Sequence[int], repeats: int) -> list[dict[str, float]]:
    """Time both ways to the boundary of small mini-batches, in turns; they must agree."""
    rows = []
    for n in sizes:
        batch = flat_batch(*tokens(n))

        def by_digits(batch: TokenBatch = batch) -> Any:
            parts = parts_of(batch, "current/behavior", None, None)
            return Tallied(parts, reducer(parts, None)).first_masked(Budget(BUDGET))

        def by_sorting(batch: TokenBatch = batch) -> Any:
            parts = parts_of(batch, "current/behavior", None, None)
            return Sorted(parts).first_masked(Budget(BUDGET))

        if by_digits() != by_sorting():
            raise AssertionError(f"the two ways differ on {n} tokens")
        turns = [(best(by_digits, 1), best(by_sorting, 1)) for _ in range(repeats)]
        digits, sorting = (min(seconds) for seconds in zip(*turns, strict=True))
        rows.append({"tokens": n, "digits": digits, "sorting": sorting})
    return rows


def measure(n: int, loop_n: int, repeats: int) -> dict[str, Any]:
    """Run everything and return seconds, bytes and ratios by name."""
    columns = tokens(n)
    batch = flat_batch(*columns)
    seconds: dict[str, float] = {"sort, numpy": best(lambda: sort_numpy(*columns), repeats)}
    if importlib.util.find_spec("torch"):
        import torch

        tensors = [torch.from_numpy(c) for c in columns]
        seconds["sort, torch"] = best(lambda: sort_torch(*tensors), repeats)
    use_kernels(False)
    threshold = solve_threshold(batch, BUDGET)
    peak = {"threshold, numpy": peak_bytes(lambda: solve_threshold(batch, BUDGET))}
    seconds["threshold, numpy"] = best(lambda: solve_threshold(batch, BUDGET), repeats)
    part = [c[:loop_n] for c in columns]
    loop = {"loop, Python": best(lambda: loop_python(*part), 1)}
    loop["mask, numpy"] = best(lambda: keep_m2po(flat_batch(*part), BUDGET), repeats)
    use_kernels(None)
    if kernels_enabled():
        for name in KERNELS:
            load_kernel(name)
        if solve_threshold(batch, BUDGET) != threshold:
            raise AssertionError("the compiled threshold differs from the numpy one")
        peak["threshold, kernel"] = peak_bytes(lambda: solve_threshold(batch, BUDGET))
        seconds["threshold, kernel"] = best(lambda: solve_threshold(batch, BUDGET), repeats)
        loop["mask, kernel"] = best(lambda: keep_m2po(flat_batch(*part), BUDGET), repeats)
    masked_by_sort = int(np.count_nonzero(~sort_numpy(*columns)))
    return {
        "tokens": n,
        "loop_tokens": loop_n,
        "budget": BUDGET,
        "masked": threshold.masked,
        "masked_by_sort": masked_by_sort,
        "seconds": seconds,
        "loop_seconds": loop,
        "peak_bytes": peak,
        "small": small([m for m in SMALL if m <= n], 10 * repeats),
        "input_as_float64_bytes": 8 * n,
        "chunk_as_float64_bytes": 8 * CHUNK,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def show(result: dict[str, Any]) -> None:
    """Print a small table."""
    seconds, loop, peak = result["seconds"], result["loop_seconds"], result["peak_bytes"]
    print(f"{result['tokens']:,} tokens, budget {result['budget']}, numpy {result['numpy']}")
    print(f"masked {result['masked']:,} (float32 sort: {result['masked_by_sort']:,})\n")
    sorts = [name for name in seconds if name.startswith("sort")]
    print(
        f"{'':20}{'seconds':>10}"
        + "".join(f"{'x ' + name:>16}" for name in sorts)
        + f"{'peak MB':>10}"
    )
    for name, value in seconds.items():
        ratios = "".join(f"{seconds[s] / value:>16.1f}" for s in sorts)
        megabytes = f"{peak[name] / 1e6:>10.1f}" if name in peak else ""
        print(f"{name:20}{value:>10.3f}{ratios}{megabytes}")
    print(
        f"(the input as float64 would be {result['input_as_float64_bytes'] / 1e6:.0f} MB,"
        f" one chunk is {result['chunk_as_float64_bytes'] / 1e6:.1f} MB)\n"
    )
    print(f"{result['loop_tokens']:,} tokens, from log-probs to the mask")
    for name, value in loop.items():
        print(f"{name:20}{value:>10.4f}{loop['loop, Python'] / value:>16.1f}")
    print(f"\n{'small mini-batches':20}{'digits, ms':>12}{'sorting, ms':>12}")
    for row in result["small"]:
        print(f"{row['tokens']:<20,}{1e3 * row['digits']:>12.3f}{1e3 * row['sorting']:>12.3f}")


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Parse, measure, print; returns what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=16_000_000)
    parser.add_argument("--loop-tokens", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args(arguments)
    result = measure(options.tokens, min(options.loop_tokens, options.tokens), options.repeats)
    show(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return result


if __name__ == "__main__":
    main()
