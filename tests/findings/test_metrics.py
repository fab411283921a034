"""Metric files by themselves, and beside a token log: what they alone can say."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2po_lab.analysis import Analysis, Options
from m2po_lab.engines import Watch, local
from m2po_lab.findings import Finding, evaluate
from m2po_lab.findings.metrics import ENTROPY
from m2po_lab.logs import open_log

DATA = Path(__file__).parent.parent / "data"
VERL = ("real/verl_grpo_fp16.jsonl", "metrics/verl_0.9.1_metrics.json")
TRL = ("real/trl_grpo_bf16.jsonl", "metrics/trl_1.13_log_history.json")


@cache
def read(*names: str) -> tuple[Analysis, dict[str, Finding]]:
    analysis = local(open_log([DATA / name for name in names]), Options(), Watch())
    return analysis, {finding.id: finding for finding in evaluate(analysis)}


def loud(path: Path) -> dict[str, Finding]:
    analysis = local(open_log(path), Options(), Watch())
    return {f.id: f for f in evaluate(analysis) if f.severity != "info"}


def written(path: Path, **columns: Any) -> Path:
    """A file of verl's file logger."""
    names = [name.replace("__", "/") for name in columns]
    rows = zip(*columns.values(), strict=True)
    lines = [
        json.dumps({"step": i + 1, "data": dict(zip(names, row, strict=True))})
        for i, row in enumerate(rows)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_run_that_solved_its_task_has_no_entropy_and_no_signal_left() -> None:
    found = read("metrics/tinker_arithmetic_metrics.jsonl")[1]
    rows = (DATA / "metrics" / "tinker_arithmetic_metrics.jsonl").read_text().splitlines()
    dead = sum(json.loads(row)["env/all/by_group/frac_mixed"] == 0 for row in rows)
    assert found["entropy-collapse"].evidence["measure"] == "optim/entropy"
    assert found["no-learning-signal"].severity == "warning"
    assert found["no-learning-signal"].evidence["dead_steps"] == dead
    assert found["no-learning-signal"].evidence["known_steps"] == len(rows) == 100


@pytest.mark.parametrize(
    ("name", "metric", "steps"),
    [
        ("metrics/verl_0.9.1_metrics.json", "critic/advantages", [1, 4, 5, 6]),
        ("metrics/trl_1.13_log_history.json", "frac_reward_zero_std", [5, 13]),
    ],
)
def test_half_of_the_steps_without_signal_is_a_note(
    name: str, metric: str, steps: list[int]
) -> None:
    found = read(name)[1]
    assert set(found) == {"no-learning-signal"}
    assert found["no-learning-signal"].severity == "info"
    assert found["no-learning-signal"].evidence["metric"] == metric
    assert found["no-learning-signal"].evidence["steps"] == steps


@pytest.mark.parametrize("log", [VERL, TRL])
def test_metrics_beside_the_tokens_change_no_verdict_on_them(log: tuple[str, str]) -> None:
    alone, together = read(log[0])[1], read(*log)[1]
    assert set(together) - {"no-learning-signal"} == set(alone) - {"no-learning-signal"}
    assert "engine-mismatch" not in together
    assert "in-step-drift" in together
    report, plain = read(*log)[0].to_dict(), read(log[0])[0].to_dict()
    assert report["ratios"] == plain["ratios"]
    assert report["tokens"] == plain["tokens"]


@pytest.mark.parametrize(("log", "offset", "shared"), [(VERL, 0, 8), (TRL, 1, 16)])
def test_how_the_steps_of_both_files_meet_is_in_the_report(
    log: tuple[str, str], offset: int, shared: int
) -> None:
    metrics = read(*log)[0].to_dict()["metrics"]
    assert {entry["step_offset"] for entry in metrics} == {offset}
    assert max(entry["shared_steps"] for entry in metrics) == shared


def test_advantages_of_the_tokens_come_before_the_metric() -> None:
    evidence = read(*TRL)[1]["no-learning-signal"].evidence
    assert "metric" not in evidence
    assert evidence["known_steps"] == 16


@pytest.mark.parametrize(
    "series",
    [
        [1.0, 0.8, 0.5, 0.3, 0.1, 0.05],
        [1.2, 0.9, 0.3, 0.02, 0.01, 0.03, 0.01, 0.02, 0.01, 0.03, 0.02, 0.01],
    ],
)
def test_an_entropy_that_falls_is_a_collapse(tmp_path: Path, series: list[float]) -> None:
    other = np.linspace(1, 2, len(series)).tolist()
    path = written(tmp_path / "m.jsonl", actor__entropy=series, actor__lr=other, actor__loss=other)
    found = loud(path)
    assert set(found) == {"entropy-collapse"}
    assert found["entropy-collapse"].evidence["measure"] == "actor/entropy"


@pytest.mark.parametrize(
    "series",
    [
        [0.5, 0.45, 0.4, 0.38, 0.36, 0.35],
        [0.01, 0.03, 0.04, 0.001, 0.001, 0.002, 0.04, 0.02],
        [0.011, 0.003, 0.002, 0.001, 0.001],
        [1.0, 0.1, 0.9, 0.1, 1.1, 0.1, 0.9, 0.1],
        [1.0, 0.2, 0.1],
        [-0.1, -0.2, -0.4, -0.8, -0.9],
    ],
)
def test_an_entropy_that_stays_or_is_none_is_no_collapse(
    tmp_path: Path, series: list[float]
) -> None:
    other = np.linspace(1, 2, len(series)).tolist()
    path = written(tmp_path / "m.jsonl", actor__entropy=series, actor__lr=other, actor__loss=other)
    assert loud(path) == {}


@pytest.mark.parametrize(
    "name",
    [
        "entropy",
        "actor/entropy",
        "train/entropy_loss",
        "policy/policy_entropy",
        "entropy/mean",
        "optim/entropy",
        "train/approx_entropy",
    ],
)
def test_frameworks_names_of_entropy_are_known(name: str) -> None:
    assert ENTROPY.search(name)


@pytest.mark.parametrize(
    "name", ["entropy_coeff", "actor/entropy_checkpointing", "cross_entropy", "entropy/max"]
)
def test_other_metrics_are_no_entropy(name: str) -> None:
    assert not ENTROPY.search(name)
