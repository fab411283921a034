import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "intervals.py"


@pytest.fixture
def bench(monkeypatch):
    specification = importlib.util.spec_from_file_location("bench_intervals", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    monkeypatch.setattr(module.estimate, "DRAWS", module.estimate.DRAWS)
    return module


def test_every_set_has_a_line_with_shares_and_widths(bench, capsys):
    bench.main(["--cases", "2"])
    lines = capsys.readouterr().out.splitlines()[2:]
    assert len(lines) == len(bench.SETS)
    for line in lines:
        ours, ours_wide, usual, usual_wide = map(float, line.split()[-4:])
        assert {ours, usual} <= {0.0, 0.5, 1.0}
        assert 0 <= usual_wide <= ours_wide < 1
