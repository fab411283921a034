"""Metric files give series, never tokens."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.metrics import MetricSeries
from m2po_lab.logs.open import Log, open_log
from tests.logs.helpers import DATA, read

Write = Callable[..., Path]


def series(*paths: Path) -> tuple[dict[str, MetricSeries], Log]:
    """Series of metric files by name."""
    log = open_log(list(paths))
    assert list(log) == []
    return {s.name: s for s in log.metrics}, log


@pytest.mark.parametrize(
    ("file", "framework", "name", "first"),
    [
        ("verl_0.9.1_metrics.json", "verl-metrics", "rollout_corr/k3_kl", 0.0),
        ("trl_1.13_log_history.json", "trl-metrics", "reward", 0.9375),
        ("tinker_arithmetic_metrics.jsonl", "tinker-metrics", "env/all/correct", 0.695),
    ],
)
def test_real_metric_files_give_their_series(
    file: str, framework: str, name: str, first: float
) -> None:
    found, log = series(DATA / "metrics" / file)
    assert found[name].value[0] == first
    assert found[name].framework == framework
    assert (np.diff(found[name].step) > 0).all()
    assert log.inputs[0].rows == 0
    assert not log.partial


def test_a_bare_infinity_stays_an_infinity() -> None:
    found, _ = series(DATA / "metrics" / "verl_0.9.1_metrics.json")
    assert any(np.isinf(s.value).any() for s in found.values())


def test_verls_file_logger_nests_its_numbers_and_writes_null_for_nan(write: Write) -> None:
    path = write(
        {"step": 1, "data": {"actor/kl": 0.1, "actor/entropy": None, "actor/lr": 1e-6}},
        {"step": 2, "data": {"actor/kl": 0.2, "actor/entropy": 0.5, "actor/lr": 1e-6}},
    )
    found, _ = series(path)
    assert found["actor/kl"].value.tolist() == [0.1, 0.2]
    assert found["actor/kl"].step.tolist() == [1, 2]
    assert np.isnan(found["actor/entropy"].value[0])


def test_trainer_state_is_read_pretty_printed_or_not(write: Write) -> None:
    history = json.loads((DATA / "metrics" / "trl_1.13_log_history.json").read_text())
    state = {"epoch": 1.0, "global_step": 16, "log_history": history}
    for text in (json.dumps(state), json.dumps(state, indent=2)):
        found, _ = series(write(text, name="trainer_state.json"))
        assert found["reward"].step.tolist() == [1, 5, 9, 13]
        assert found["loss"].step.tolist() == list(range(1, 17))


def test_entries_without_a_step_are_numbered(write: Write) -> None:
    rows = [{"loss": float(i), "lr": 0.1, "grad_norm": 1.0} for i in range(3)]
    found, _ = series(write(*rows))
    assert found["loss"].step.tolist() == [0, 1, 2]


def test_a_token_log_and_its_metric_file_are_read_together() -> None:
    batch, log = read(
        DATA / "real" / "verl_grpo_fp16.jsonl", DATA / "metrics" / "verl_0.9.1_metrics.json"
    )
    assert batch.shape == (3541,)
    assert [entry.format for entry in log.inputs] == ["jsonl", "metrics"]
    assert any(s.name == "critic/score/mean" for s in log.metrics)


def test_a_configuration_is_no_metric_file(write: Write) -> None:
    config = {"hidden_size": 8, "vocab_size": 100, "layers": 2, "heads": 4, "name": "m"}
    for text in (json.dumps(config), json.dumps(config, indent=2)):
        with pytest.raises(UnreadableLogError, match="unknown format"):
            open_log(write(text, name="config.json"))


def test_series_of_several_files_are_joined(write: Write) -> None:
    a = write({"step": 1, "a/x": 1.0, "a/y": 2.0}, name="1.jsonl")
    b = write({"step": 2, "a/x": 3.0, "a/y": 4.0}, name="2.jsonl")
    found, _ = series(a, b)
    assert found["a/x"].step.tolist() == [1, 2]
    assert found["a/x"].value.tolist() == [1.0, 3.0]
