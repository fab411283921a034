import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "selection.py"


@pytest.fixture
def bench():
    specification = importlib.util.spec_from_file_location("bench_selection", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_sort_and_the_threshold_of_the_benchmark_mask_the_same_tokens(bench):
    columns = bench.tokens(3000)
    threshold = bench.solve_threshold(bench.flat_batch(*columns), bench.BUDGET)
    assert 0 < threshold.masked < threshold.active
    assert (~bench.sort_numpy(*columns)).sum() == threshold.masked
    assert bench.loop_python(*columns).count(False) == threshold.masked


def test_the_benchmark_runs_and_writes_its_numbers(bench, tmp_path, capsys):
    file = tmp_path / "numbers.json"
    bench.main(["--tokens", "2000", "--repeats", "1", "--json", str(file)])
    numbers = json.loads(file.read_text())
    assert numbers["tokens"] == numbers["loop_tokens"] == 2000
    assert {"sort, numpy", "threshold, numpy"} <= numbers["seconds"].keys()
    assert [row["tokens"] for row in numbers["small"]] == [64, 640]
    assert min(row[way] for row in numbers["small"] for way in ("digits", "sorting")) > 0
    assert "2,000 tokens" in capsys.readouterr().out
