import importlib.util
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "early_warning.py"


@pytest.fixture(scope="module")
def bench():
    specification = importlib.util.spec_from_file_location("bench_early_warning", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def runs(bench):
    return bench.Runs(pq.read_table(bench.TABLE))


def test_the_table_holds_every_planned_run_and_is_small(bench, runs):
    assert len(runs.settings) == len(bench.plans(Path())) >= 120
    assert bench.TABLE.stat().st_size < 1_000_000


def test_the_page_states_what_the_table_gives(bench, runs):
    page = SCRIPT.parents[1].joinpath("docs", "early_warning.md").read_text()
    total, collapse = bench.counts(runs)["all"]
    assert f"Measured on {total} runs of two toys, {collapse} of which" in page
    fold = runs.folds("recipe")["running-sum"]
    for name, row in (("m2", "M2, active"), ("reward.jump", "reward, jump")):
        found = bench.judged(runs, (name,), [fold])
        low, high = (f"{bound:.2f}"[1:] for bound in found["auc_interval"])
        area = f"{found['auc']:.2f}"[1:]
        warned, false = ("/".join(map(str, found[key][:2])) for key in ("warned", "false_alarms"))
        line = f"| recipe: transformer | {row} | {area} ({low}-{high}) | {warned} | {false} ("
        assert line in page


def test_rounding_keeps_eight_significant_bits_and_gaps(bench):
    values = [*np.geomspace(1e-9, 1e9, 200), 0.0, -3.3, float("nan")]
    found = bench.coarse(values)
    np.testing.assert_allclose(found, values, rtol=2**-8)
