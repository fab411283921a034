"""Exact bias and spread of every objective on stale data, by enumeration: docs/exactness.md.

    python bench/exactness.py [--rows 3] [--out docs/exactness.md] [--json FILE]

Takes a few minutes: objectives of mini-batch scope are summed over all ordered batches. Everything
is float64 and deterministic; tests/exactness/test_page.py recomputes the part that is fast.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from m2po_lab.core.objectives import OBJECTIVES
from m2po_lab.exactness import (
    Problem,
    Row,
    Step,
    bandit,
    compare,
    short_sequence,
    stale_steps,
    unbiased_lags,
    uneven_bandit,
)

PROBLEMS = ((bandit(), 0.5), (short_sequence(), 0.5), (uneven_bandit(), 2.0))
"""Each with its learning rate, which sets how far the policy drifts in an update."""
SHOWN_LAGS = (0, 1, 2, 4, 8)
PARAMS: dict[str, dict[str, Any]] = {
    "stapo": {"tau_p": 0.6},
    "clip_cov": {"fraction": 0.1, "cov_low": 0.05},
    "kl_cov": {"fraction": 0.1, "coef": 0.1},
}
"""Not the defaults, whose thresholds no token of a vocabulary of two or three can reach."""

INTRODUCTION = """# Exact bias and variance

What does each objective do to the policy gradient when the data are stale? On problems with a
handful of outcomes the answer is a finite sum, without sampling noise. `m2po_lab.exactness`
enumerates every response (and, for objectives that look at the whole mini-batch, every ordered
batch), so this page has no error bars. `bench/exactness.py` writes it.

Setting. The policy is a table of logits, trained by exact gradient ascent. The last of nine
policies is the current one, and data of lag k come from the policy k updates before it. The
proximal policy is the one before the last update. A is the reward minus the sampler's expected
reward of the prompt. All objectives use the aggregation `sequence_sum`, under which every weight
is 1 on policy, and their default parameters; the exceptions are

{exceptions}

whose defaults no token of so small a vocabulary can reach. `vcpo` is shown without its factor of
the step size.

Each cell is *bias / spread*. Bias: distance between the expected gradient and the true policy
gradient of the current policy, over the length of the latter. A gradient of zero has 1.00; more
than that points the wrong way or too far. Spread: standard deviation of the gradient of one row,
over the same length. "unbiased to" is the largest lag up to which the bias is below 1e-9; a dash
says not even on policy, where `clip_cov` and `stapo` may drop tokens too. Objectives of mini-batch
scope see batches of {rows} rows; their spread is that of a batch times the square root of its rows.

What can be read off:

- A small bias with a large spread averages out over more data; a bias does not.
- On a bandit importance sampling is exact. On sequences the ratio of a single token leaves out how
  likely its prefix has become; only weights of the whole response (`vcpo`) remain exact, as long
  as no weight reaches its cap. A correction that is exact up to the proximal policy
  (`tis_sequence`, `mis`) keeps the token-level bias of the last update and adds none with lag.
  `minpro`, which lets a token's weight fall with the worst ratio before it, stays between the two.
- Clips and masks drop the tokens that carry the gradient once the policy has moved in the right
  direction. Their bias jumps when the drift crosses the bound, and the spread falls with it. A
  clip around the policy at the start of the step (`remix`, `minirl`, `tis`, `decoupled_ppo`) does
  not see the drift before it.
- A budget on the second moment of a mini-batch needs a tail to tell apart from the rest. Where all
  tokens drift alike (bandit) it goes the way of the clip. Where few drift far (uneven bandit) its
  bias is never above that of PPO's clip, and far below it while the mean is within the budget
  (lag 2); further out nearly every active token is over the budget, and the two come together.

These problems say what an estimator does, not how a language model learns.
"""


def bound_table(steps: Sequence[Step]) -> list[str]:
    """M2, E(r-1)^2 and the paper's bound at every lag."""
    lines = [
        "| lag | M2 = E d^2 | R | E (r-1)^2 | R^2 M2 |",
        "|---|---|---|---|---|",
    ]
    for step in steps:
        m2, high = step.second_moment, step.ratio_bound
        lines.append(
            f"| {step.lag} | {m2:.5f} | {high:.3f} | {step.chi_square:.5f} | {high**2 * m2:.5f} |"
        )
    return lines


def objective_table(rows: Sequence[Row]) -> list[str]:
    """Bias / spread of every objective at the lags shown."""
    furthest = unbiased_lags(rows)
    heads = " | ".join(f"lag {lag}" for lag in SHOWN_LAGS)
    lines = [
        f"| objective | scope | {heads} | unbiased to |",
        "|---|---|" + "---|" * (len(SHOWN_LAGS) + 1),
    ]
    for name in dict.fromkeys(row.objective for row in rows):
        own = {row.lag: row for row in rows if row.objective == name}
        cells = " | ".join(cell(own[lag]) for lag in SHOWN_LAGS)
        lag = furthest[name]
        lines.append(f"| `{name}` | {own[0].scope} | {cells} | {lag if lag >= 0 else '-'} |")
    return lines


def cell(row: Row) -> str:
    """Bias / spread, or a dash where the objective gave no gradient."""
    if row.refused:
        return "-"
    return f"{row.relative_bias:.3f} / {row.relative_deviation:.2f}"


def section(problem: Problem, steps: Sequence[Step], rows: Sequence[Row]) -> list[str]:
    """One problem: what it is, the bound, the objectives."""
    what = (
        f"Prompts: {problem.prompts}. Vocabulary: {problem.vocabulary}."
        f" Tokens of a response: {problem.horizon}."
    )
    return [
        f"## {problem.name.capitalize()}",
        "",
        what,
        "",
        "The bound of the paper, E (r-1)^2 <= R^2 M2 for 1/R <= r <= R, exactly:",
        "",
        *bound_table(steps),
        "",
        *objective_table(rows),
        "",
    ]


def page(results: Sequence[tuple[Problem, Sequence[Step], Sequence[Row]]], rows: int) -> str:
    """The whole page."""
    exceptions = "\n".join(
        f"- `{name}`: {', '.join(f'{k} = {v}' for k, v in params.items())}"
        for name, params in PARAMS.items()
    )
    lines = [INTRODUCTION.format(exceptions=exceptions, rows=rows)]
    for result in results:
        lines += section(*result)
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Enumerate, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3, help="rows of a mini-batch")
    parser.add_argument("--out", type=Path, default=Path("docs/exactness.md"))
    parser.add_argument("--json", type=Path, help="all lags and the cosine as well")
    arguments = parser.parse_args()
    results = []
    for problem, learning_rate in PROBLEMS:
        steps = stale_steps(problem, learning_rate=learning_rate)
        rows = compare(steps, OBJECTIVES, rows=arguments.rows, **PARAMS)
        results.append((problem, steps, rows))
    arguments.out.write_text(page(results, arguments.rows), encoding="utf-8")
    if arguments.json:
        listed = {p.name: [asdict(row) for row in rows] for p, _, rows in results}
        arguments.json.write_text(json.dumps(listed, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
