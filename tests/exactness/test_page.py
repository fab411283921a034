"""docs/exactness.md holds the numbers that the code gives."""

import importlib.util
import re
from pathlib import Path

import pytest

from m2po_lab.core.objectives import OBJECTIVES
from m2po_lab.exactness import compare, stale_steps

ROOT = Path(__file__).parents[2]
SEPARABLE = [n for n, spec in OBJECTIVES.items() if spec.scope in ("token", "sequence")]


def script():
    spec = importlib.util.spec_from_file_location("exactness_page", ROOT / "bench/exactness.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGE = (ROOT / "docs/exactness.md").read_text(encoding="utf-8")
SCRIPT = script()


def table(title):
    """Objective -> cells, of the section with that title."""
    text = PAGE.split(f"\n## {title.capitalize()}\n")[1].split("\n## ")[0]
    found = re.findall(r"^\| `(\w+)` \| [\w-]+ \| (.*) \| (\S+) \|$", text, re.MULTILINE)
    return {name: cells.split(" | ") for name, cells, _ in found}


@pytest.mark.parametrize(("problem", "rate"), SCRIPT.PROBLEMS, ids=lambda v: getattr(v, "name", ""))
def test_the_page_holds_every_objective_and_the_numbers_of_independent_rows(problem, rate):
    steps = [s for s in stale_steps(problem, learning_rate=rate) if s.lag in SCRIPT.SHOWN_LAGS]
    shown = table(problem.name)
    assert set(shown) == set(OBJECTIVES)
    rows = compare(steps, SEPARABLE, **SCRIPT.PARAMS)
    for name in SEPARABLE:
        cells = [SCRIPT.cell(row) for row in rows if row.objective == name]
        assert shown[name] == cells, name


@pytest.mark.parametrize("name", sorted(set(OBJECTIVES) - set(SEPARABLE)))
@pytest.mark.parametrize(("problem", "rate"), SCRIPT.PROBLEMS, ids=lambda v: getattr(v, "name", ""))
def test_the_page_holds_the_numbers_of_objectives_that_look_at_the_mini_batch(problem, rate, name):
    lag = 2
    (step,) = (s for s in stale_steps(problem, learning_rate=rate) if s.lag == lag)
    rows = int(re.search(r"see batches\s+of (\d+)\s+rows", PAGE).group(1))
    (row,) = compare([step], [name], rows=rows, **SCRIPT.PARAMS)
    assert table(problem.name)[name][SCRIPT.SHOWN_LAGS.index(lag)] == SCRIPT.cell(row)


@pytest.mark.parametrize(("problem", "rate"), SCRIPT.PROBLEMS, ids=lambda v: getattr(v, "name", ""))
def test_the_bound_of_the_page_is_computed_and_holds_at_every_lag(problem, rate):
    steps = stale_steps(problem, learning_rate=rate)
    assert [s.lag for s in steps] == list(range(9))
    assert "\n".join(SCRIPT.bound_table(steps)) in PAGE
    assert all(s.chi_square <= s.ratio_bound**2 * s.second_moment for s in steps)


def test_where_few_tokens_drift_far_the_budget_has_no_more_bias_than_the_clip():
    shown = table("uneven bandit")
    bias = {n: [float(c.split(" / ")[0]) for c in shown[n]] for n in ("m2po", "ppo")}
    assert all(m <= p for m, p in zip(bias["m2po"], bias["ppo"], strict=True))
    assert bias["m2po"] != bias["ppo"]
