"""Tokens a second and memory of the scan, on synthetic batches made while it runs.

    python bench/scan.py [--tokens 20_000_000] [--ratios 1] [--length 512]

Seconds are CPU seconds of one thread; the time to make the batches is taken off. Memory is the
process's peak; run it with several sizes to see that it does not grow with the log.
"""

import argparse
import resource
import time
from collections.abc import Iterator

import numpy as np

from m2po_lab.analysis import Options
from m2po_lab.analysis.scan import Scanner
from m2po_lab.core.batch import TokenBatch
from m2po_lab.integrity import checked
from m2po_lab.logs.rows import Rows

BATCH_TOKENS = 65_536
STEPS = 40


def batches(tokens: int, ratios: int, length: int) -> Iterator[TokenBatch]:
    """Batches of equally long rows with Student-t drift, lags 0 to 7, in `STEPS` steps."""
    rng = np.random.default_rng(0)
    rows = BATCH_TOKENS // length
    number = tokens // BATCH_TOKENS
    for i in range(number):
        n = rows * length
        behavior = -2.0 - rng.exponential(1.0, n)
        yield TokenBatch(
            behavior_logp=behavior,
            current_logp=np.minimum(behavior + 0.1 * rng.standard_t(4, n), 0.0),
            proximal_logp=behavior + 0.01 * rng.standard_normal(n) if ratios == 3 else None,
            advantage=np.repeat(rng.choice([-1.0, 0.0, 1.0], rows), length),
            version=np.repeat(100 - rng.integers(0, 8, rows), length),
            lengths=np.full(rows, length),
            rows=Rows(
                row_id=[f"{i}/{k}" for k in range(rows)],
                step=np.full(rows, i * STEPS // number),
                train_version=np.full(rows, 100),
                reward=rng.integers(0, 2, rows).astype(np.float64),
            ),
        )


def main(arguments: list[str] | None = None) -> None:
    """Print one line: tokens, seconds a stage, tokens a second, peak memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=20_000_000)
    parser.add_argument("--ratios", type=int, choices=(1, 3), default=1)
    parser.add_argument("--length", type=int, default=512)
    args = parser.parse_args(arguments)
    spent = {"make": 0.0, "check": 0.0, "scan": 0.0}
    scanner, last = Scanner(Options()), time.process_time()

    def lap(stage: str) -> None:
        nonlocal last
        now = time.process_time()
        spent[stage] += now - last
        last = now

    def made() -> Iterator[TokenBatch]:
        for batch in batches(args.tokens, args.ratios, args.length):
            lap("make")
            yield batch

    for clean, evidence in checked(made()):
        lap("check")
        scanner.add(clean, evidence)
        lap("scan")
    analysis = scanner.finish()
    lap("scan")
    start = time.process_time()
    analysis.to_dict()
    report = time.process_time() - start
    tokens = analysis.tokens["logged"]
    work = spent["check"] + spent["scan"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{tokens:,} tokens, {args.ratios} ratios, rows of {args.length}: integrity "
        f"{spent['check']:.1f} s, statistics {spent['scan']:.1f} s, together "
        f"{tokens / work / 1e6:.2f} M tokens/s; report {report:.1f} s; peak {peak:.0f} MB"
    )


if __name__ == "__main__":
    main()
