import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from m2po_lab.core.objectives import OBJECTIVES, objective

SCRIPT = Path(__file__).parents[2] / "bench" / "objectives.py"
pytest.importorskip("torch")


@pytest.fixture
def bench():
    specification = importlib.util.spec_from_file_location("bench_objectives", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_benchmark_calls_existing_objectives_with_parameters_they_have(bench):
    assert set(bench.AGGREGATION) <= set(bench.VERL) <= set(OBJECTIVES)
    for name, (_, params, _) in bench.VERL.items():
        objective(name, bench.AGGREGATION.get(name, "token_mean"), **params)


def test_the_tokens_of_the_benchmark_are_log_probs_with_active_and_ragged_rows(bench):
    data = bench.tensors(8, 32)
    assert all((data[k] <= 0).all() for k in data if k.endswith("_logp"))
    assert 0 < data["keep"].float().mean() < 1
    d = (data["current_logp"] - data["behavior_logp"])[data["keep"]]
    assert (d.abs() > 0.2).any()


def test_both_ways_of_computing_a_loss_have_one_gradient(bench):
    data = bench.tensors(4, 16)
    for name in OBJECTIVES:
        losses = bench.ours(name, data).values()
        whole, host = (bench.gradient(loss, data["current_logp"]).numpy() for loss in losses)
        np.testing.assert_allclose(whole, host, rtol=1e-6, err_msg=name)


def test_the_benchmark_runs_and_writes_its_numbers(bench, tmp_path, capsys):
    file = tmp_path / "numbers.json"
    options = ["--rows", "4", "--width", "16", "--repeats", "1", "--only", "is,m2po"]
    bench.main([*options, "--no-verl", "--json", str(file)])
    first, second = json.loads(file.read_text())
    assert (first["objective"], second["objective"]) == ("is", "m2po")
    assert min(first["loss_ns"], first["token_loss_ns"], second["loss_ns"]) > 0
    assert "4 x 16" in capsys.readouterr().out
