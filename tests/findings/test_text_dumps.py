"""Dumps without log-probs: rewards, lengths and groups, and the flag that would log the rest."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from m2po_lab.analysis import Analysis, Options
from m2po_lab.engines import Watch, local
from m2po_lab.findings import Finding, evaluate
from m2po_lab.logs import open_log

DATA = Path(__file__).parent.parent / "data" / "frameworks"
FLAGS = {
    "verl/rollout_data": "actor_rollout_ref.rollout.calculate_log_probs=True",
    "trl": "vllm_importance_sampling_correction=True",
    "ms-swift": "--log_rollout_offpolicy_metrics true",
    "roll": "infer_logprobs and old_log_probs",
    "areal": "logprobs, prox_logp, versions",
    "slime/rollout_data": "--save-debug-train-data",
    "open-instruct": "the trainer's new_logprobs",
    "atropos": "trainer_logprobs",
    "prime-rl/rollouts": "trainer.enable_token_export = true",
}


@cache
def read(name: str) -> tuple[Analysis, dict[str, Finding]]:
    analysis = local(open_log(DATA / name), Options(), Watch())
    return analysis, {finding.id: finding for finding in evaluate(analysis)}


@pytest.mark.parametrize("name", FLAGS)
def test_the_finding_names_the_flag_of_the_framework_and_nothing_else_fires(name: str) -> None:
    found = read(name)[1]
    missing = found.pop("missing-log-probs")
    assert missing.severity == "info"
    assert FLAGS[name] in missing.advice
    assert missing.evidence["formats"] == [missing.advice.split(":")[0]]
    # the layouts of the test data deal rows out by fours, across the prompts of the run
    assert {f.id for f in found.values() if f.severity != "info"} <= {"groups-broken"}


@pytest.mark.parametrize("name", [name for name in FLAGS if not name.startswith("prime-rl")])
def test_rewards_lengths_and_groups_are_those_of_the_run(name: str) -> None:
    report: dict[str, Any] = read(name)[0].to_dict()
    assert report["reward"]["n"] == report["rows"]["kept"] == report["lengths"]["n"]
    assert 0.0 <= report["reward"]["mean"] <= 1.0
    assert report["groups"]["n"] > 0
    assert report["primary"] is None
    if report["lengths"]["unit"] == "tokens" and report["reward"]["by_step"]:
        for row in report["reward"]["by_step"]:
            assert row["n"] == 8


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("verl/rollout_data", {"4": 8}),
        ("slime/rollout_data", {"4": 8}),
        ("trl", {"2": 4, "6": 4}),
        ("roll", {"2": 4, "6": 4}),
    ],
)
def test_eight_rows_a_step_fall_into_the_groups_of_the_dump(
    name: str, sizes: dict[str, int]
) -> None:
    report = read(name)[0].to_dict()
    assert [row["step"] for row in report["reward"]["by_step"]] == [0, 1, 2, 3]
    assert report["groups"]["sizes"] == sizes
