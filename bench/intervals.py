"""How often intervals of avg@k and pass@k hold the truth, and how wide they are.

Problems are drawn from a beta distribution of how hard they are, samples from the problems; ours
(`full_scale.evaluation.over_problems`) against the percentile bootstrap over problems.

    python bench/intervals.py [--cases 500]
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from full_scale.evaluation import estimate
from full_scale.evaluation.estimate import average, over_problems, pass_at

Values = NDArray[np.float64]

SETS = (
    ("AIME, hardly solved", 30, 16, 0.05, 2.0, None),
    ("AIME, some solved", 30, 16, 0.2, 0.8, None),
    ("AIME, hardly solved", 30, 16, 0.05, 2.0, 16),
    ("AIME, some solved", 30, 16, 0.3, 0.7, 4),
    ("all equally hard", 30, 16, 20.0, 20.0, None),
    ("AMC", 40, 4, 0.6, 0.4, None),
    ("Minerva", 272, 4, 0.3, 0.5, None),
    ("Math500", 500, 4, 0.8, 0.2, None),
    ("Olympiad", 674, 4, 0.4, 0.5, None),
)
"""Name, problems, samples, the two parameters of the distribution, k of pass@k."""


def percentile(rng: np.random.Generator) -> Callable[[Values], tuple[float, float]]:
    """The interval that is used most often."""

    def interval(values: Values) -> tuple[float, float]:
        means = values[rng.integers(0, values.size, (2000, values.size))].mean(axis=1)
        low, high = np.quantile(means, (0.025, 0.975))
        return float(low), float(high)

    return interval


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line a set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    cases = parser.parse_args(argv).cases
    estimate.DRAWS = 4000
    rng = np.random.default_rng(1)
    usual = percentile(rng)
    print(f"{'':<22}{'problems':>9}{'measure':>9}{'truth':>8}{'ours':>16}{'percentile':>16}")
    print(f"{'':<48}{'covers  width':>16}{'covers  width':>16}")
    for name, problems, samples, a, b, k in SETS:
        truth = 1 - float(np.prod((b + np.arange(k or 1)) / (a + b + np.arange(k or 1))))
        found: dict[str, list[tuple[bool, float]]] = {"ours": [], "percentile": []}
        for _ in range(cases):
            right = rng.binomial(samples, rng.beta(a, b, problems))
            total = np.full(problems, samples)
            values = average(right, total) if k is None else pass_at(right, total, k)
            for method, (low, high) in (
                ("ours", over_problems(values)[1:]),
                ("percentile", usual(values)),
            ):
                found[method].append((low <= truth <= high, high - low))
        columns = [np.mean(pairs, axis=0) for pairs in found.values()]
        shown = "".join(f"{covers:>9.3f}{width:>7.3f}" for covers, width in columns)
        measure = f"avg@{samples}" if k is None else f"pass@{k}"
        print(f"{name:<22}{problems:>9}{measure:>9}{truth:>8.3f}{shown}")


if __name__ == "__main__":
    main()
