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


def test_where_few_tokens_drift_far_the_budget_has_no_more_bias_than_the_clip():
    shown = table("uneven bandit")
    bias = {n: [float(c.split(" / ")[0]) for c in shown[n]] for n in ("m2po", "ppo")}
    assert all(m <= p for m, p in zip(bias["m2po"], bias["ppo"], strict=True))
    assert bias["m2po"] != bias["ppo"]
