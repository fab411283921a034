import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "scan.py"


@pytest.fixture
def bench():
    specification = importlib.util.spec_from_file_location("bench_scan", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_benchmark_counts_the_tokens_it_makes(bench, capsys):
    bench.main(["--tokens", "140000", "--ratios", "3", "--length", "64"])
    line = capsys.readouterr().out
    assert line.startswith("131,072 tokens, 3 ratios, rows of 64")
    assert "tokens/s" in line
