"""Two real runs: what their logs must be called, and what they must not."""

from functools import cache
from pathlib import Path

import pytest

from m2po_lab.analysis import Analysis
from m2po_lab.analysis.scan import scan
from m2po_lab.findings import Finding, evaluate
from m2po_lab.logs import open_log

DATA = Path(__file__).parent.parent / "data" / "real"


@cache
def read(name: str) -> tuple[Analysis, dict[str, Finding]]:
    analysis = scan(open_log(DATA / f"{name}.jsonl"))
    return analysis, {finding.id: finding for finding in evaluate(analysis)}


def test_the_collapse_of_the_trl_run_is_visible_although_ess_is_high() -> None:
    analysis, found = read("trl_grpo_bf16")
    assert {"moving-without-signal", "low-tail", "negative-side-drift"} <= set(found)
    assert analysis.to_dict()["ratios"]["current/behavior"]["all"]["ess_fraction"] > 0.8
    assert "ESS" in found["low-tail"].message
    assert set(found["moving-without-signal"].evidence["steps"]) <= {5, 6, 7, 13, 14, 15}
    assert found["no-learning-signal"].severity == "info"


def test_the_trl_engine_is_within_what_bfloat16_explains() -> None:
    found = read("trl_grpo_bf16")[1]
    quiet = {"engine-mismatch", "confident-disagreement", "weights-not-synced", "staleness-drift"}
    assert not quiet & set(found)


def test_the_verl_run_drifts_within_its_steps_and_its_engine_is_well() -> None:
    found = read("verl_grpo_fp16")[1]
    assert "in-step-drift" in found
    assert not {"engine-mismatch", "staleness-drift", "shift-by-one"} & set(found)
    assert found["in-step-drift"].evidence["floor"]["m2"] < 1e-5


def test_honest_zeros_and_repeated_short_answers_are_left_alone() -> None:
    analysis, found = read("verl_grpo_fp16")
    assert not {"zero-filled-log-probs", "duplicate-rows", "repeated-padding"} & set(found)
    assert analysis.integrity.tokens.kept == analysis.integrity.tokens.logged == 3541
    assert read("trl_grpo_bf16")[0].integrity.tokens.kept == 502


def test_no_error_is_raised_on_a_real_run() -> None:
    for name in ("trl_grpo_bf16", "verl_grpo_fp16"):
        assert [f.id for f in read(name)[1].values() if f.severity == "error"] == []


def test_one_log_prob_too_few_is_a_length_mismatch() -> None:
    analysis, found = read("rlloggingboard_token_level")
    assert found["length-mismatch"].evidence["columns"] == {"behavior shorter": 1}
    assert "missing-log-probs" in found
    assert analysis.integrity.rows.unaligned == 1


def test_the_attribution_and_the_findings_name_the_same_cause() -> None:
    for name in ("trl_grpo_bf16", "verl_grpo_fp16"):
        analysis, found = read(name)
        report = analysis.to_dict()
        parts, whole = report["attribution"], report["ratios"]["current/behavior"]["all"]["m2"]
        assert "in-step-drift" in found
        assert parts["staleness"] == 0.0
        assert parts["in_step"] == pytest.approx(whole - parts["floor_lag0"])
