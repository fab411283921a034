import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "reward.py"


@pytest.fixture
def bench():
    specification = importlib.util.spec_from_file_location("bench_reward", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_mixed_answers_keep_their_deadline_though_processes_die(bench, capsys):
    bench.main(["--pairs", "150", "--kill-every", "60", "--hostile", "0.02", "--cpu-seconds", "1"])
    report = json.loads(capsys.readouterr().out)
    assert sum(report["scores"].values()) == report["pairs"] == 150
    assert report["killed_from_outside"] == 2
    assert 1 <= report["cut_off"] <= 6
    # Waiting, judging and the start of a process that takes the place of a killed one, twice.
    assert report["wait_seconds"]["p100"] < 3 * (report["deadline_seconds"] + 20)
    peaks = report["largest_process_mb"]
    assert 0 < max(peaks) < 1024


def test_the_mixture_is_seeded(bench):
    assert list(bench.pairs(50, 0.1, 3)) == list(bench.pairs(50, 0.1, 3))
    assert list(bench.pairs(50, 0.1, 3)) != list(bench.pairs(50, 0.1, 4))
