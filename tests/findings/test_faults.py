"""Every finding fires on a small log made for it, on several seeds, with numbers that fit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2po_lab.analysis.scan import scan
from m2po_lab.findings import CATALOG, evaluate
from m2po_lab.logs import open_log
from tests.findings import sick
from tests.findings.synthetic import Columns, analyzed, found, loud, make

PAIRS = [(name, maker) for name, makers in sick.CASES.items() for maker in makers]
SEEDS = range(2)
Maker = Callable[[int], Columns]


@pytest.mark.parametrize(("name", "maker"), PAIRS, ids=[f"{n}-{m.__name__}" for n, m in PAIRS])
def test_a_faulty_log_yields_its_finding(name: str, maker: Maker) -> None:
    for seed in SEEDS:
        findings = found(maker(seed))
        assert name in findings, f"seed {seed}: {sorted(findings)}"
        assert findings[name].message
        json.dumps(findings[name].to_dict(), allow_nan=False)


@pytest.mark.parametrize("maker", sick.QUIET, ids=lambda maker: maker.__name__)
def test_a_peculiar_log_is_not_a_sick_one(maker: Maker) -> None:
    for seed in SEEDS:
        assert list(loud(maker(seed))) == []


def test_every_finding_but_the_one_without_a_rule_has_a_log_that_fires_it() -> None:
    assert set(CATALOG) - set(sick.CASES) == {"collapse-risk"}


def test_collapse_risk_stays_silent_until_a_rule_is_measured() -> None:
    assert all("collapse-risk" not in found(maker(0)) for maker in (sick.collapsing, sick.moving))


def test_drift_is_called_by_what_the_versions_say() -> None:
    assert "in-step-drift" not in found(sick.stale(0))
    assert "staleness-drift" not in found(sick.epochs(0))
    assert not {"staleness-drift", "in-step-drift"} & set(found(sick.mismatched(0)))


def test_the_attribution_blames_what_the_findings_blame() -> None:
    for maker in (sick.stale, sick.epochs, sick.in_step):
        analysis = analyzed(maker(1))
        parts, ids = analysis.to_dict()["attribution"], {f.id for f in evaluate(analysis)}
        assert ("staleness-drift" in ids) == (parts["staleness"] > 0.04), maker.__name__
        assert ("in-step-drift" in ids) == ((parts["in_step"] or 0) > 0.04), maker.__name__


def test_engine_faults_are_told_apart() -> None:
    for maker in (sick.top_p, sick.mismatched, sick.routed, sick.unsynced, sick.low_tail):
        assert "temperature-mismatch" not in found(maker(1)), maker.__name__
    for maker in (sick.trainer_without_temperature, sick.mismatched, sick.negative_side):
        assert "truncated-support" not in found(maker(1)), maker.__name__
    for maker in (sick.mismatched, sick.stale, sick.trainer_without_temperature):
        assert not {"two-populations", "rare-outliers", "shift-by-one"} & set(found(maker(1)))


def test_the_slope_names_the_temperature() -> None:
    low = found(sick.trainer_without_temperature(2))["temperature-mismatch"].evidence["slope"]
    high = found(sick.raw_engine_log_probs(2))["temperature-mismatch"].evidence["slope"]
    assert low == pytest.approx(0.6 - 1, abs=0.1)
    assert high == pytest.approx(1 / 0.6 - 1, abs=0.15)


def test_the_lost_support_is_estimated() -> None:
    evidence = found(sick.top_p(0))["truncated-support"].evidence
    assert np.exp(evidence["log_p"]) == pytest.approx(0.9, abs=0.03)


def test_a_clip_is_judged_against_the_floor_it_would_cut_into() -> None:
    log = make(3)
    assert "clip-below-noise-floor" not in found(log)
    tight = found(log, clip_low=1e-5, clip_high=1e-5)["clip-below-noise-floor"].evidence
    d = np.abs(log.proximal - log.behavior)
    assert tight["share"] == pytest.approx((d > 1e-5).mean(), abs=0.03)


@pytest.mark.parametrize("eps", [0.001, 0.01, 0.05])
def test_the_share_outside_the_clip_is_right_within_its_bins(eps: float) -> None:
    log = make(4, engine=0.05)
    evidence = found(log, clip_low=eps, clip_high=eps)["clip-below-noise-floor"].evidence
    r = np.exp(log.proximal - log.behavior)
    assert evidence["share"] == pytest.approx(((r < 1 - eps) | (r > 1 + eps)).mean(), abs=0.02)


def test_seven_tokens_are_no_verdict() -> None:
    few = make(0, rows=2, length=3, steps=1, engine=0.8, group=2, advantage=None)
    assert [name for name in found(few) if name != "confident-disagreement"] == []


def test_a_shifted_ratio_has_no_statistics_and_the_others_have() -> None:
    analysis = scan([sick.shifted(0).batch()])
    report = analysis.to_dict()
    assert set(report["ratios"]) == {"current/proximal"}
    assert any("behavior" in entry["what"] for entry in report["not_computable"])
    assert all(
        finding.evidence["ratio"] == "current/proximal"
        for finding in evaluate(analysis)
        if finding.id != "shift-by-one"
    )


def test_findings_do_not_depend_on_how_the_log_is_cut() -> None:
    whole = sick.stale(1).batch()
    rows = np.repeat(np.arange(whole.n_rows), np.asarray(whole.lengths))
    pieces = []
    for part in np.array_split(np.arange(whole.n_rows), 5):
        pieces.append(_take(whole, part, rows))
    one, many = (evaluate(scan(batches)) for batches in ([whole], pieces))
    assert [(f.id, f.evidence["ratio"]) for f in one] == [(f.id, f.evidence["ratio"]) for f in many]


def _take(batch: Any, part: np.ndarray, rows: np.ndarray) -> Any:
    from m2po_lab.core.batch import TOKEN_FIELDS, TokenBatch
    from m2po_lab.logs.rows import Rows

    tokens = np.isin(rows, part)
    facts = batch.rows
    return TokenBatch(
        **{name: getattr(batch, name)[tokens] for name in TOKEN_FIELDS if name in batch.present()},
        lengths=batch.lengths[part],
        rows=Rows(
            source=[facts.source[i] for i in part],
            line=facts.line[part],
            row_id=[facts.row_id[i] for i in part],
            group_id=[facts.group_id[i] for i in part],
            step=facts.step[part],
            train_version=facts.train_version[part],
            prompt_key=facts.prompt_key[part],
        ),
    )


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def as_json(log: Columns, **more: Callable[[np.ndarray], Any]) -> list[dict[str, Any]]:
    """Rows under names of the wild; `more` adds columns computed from the row's token indices."""
    rows = []
    for i in range(log.lengths.size):
        at = np.flatnonzero(log.row == i)
        assert log.row_id is not None
        row = {
            "sequence_id": log.row_id[i],
            "step": int(log.step[i]),
            "token_ids": [int(1 + k % 50) for k in at],
            "rollout_log_probs": log.behavior[at].tolist(),
            "trainer_log_probs": log.current[at].tolist(),
            **{name: column(at) for name, column in more.items()},
        }
        rows.append(row)
    return rows


def ids_of(path: Path | list[Path]) -> set[str]:
    return {finding.id for finding in evaluate(scan(open_log(path)))}


def test_other_ids_in_a_file_are_retokenised(tmp_path: Path) -> None:
    rows = as_json(make(0), train_token_ids=lambda at: [int(2 + k % 50) for k in at])
    assert "retokenised" in ids_of(write(tmp_path / "log.jsonl", rows))
    same = as_json(make(0), train_token_ids=lambda at: [int(1 + k % 50) for k in at])
    assert "retokenised" not in ids_of(write(tmp_path / "same.jsonl", same))


def test_one_log_prob_too_many_in_a_file_is_a_length_mismatch(tmp_path: Path) -> None:
    rows = as_json(make(0))
    for row in rows[::3]:
        row["rollout_log_probs"].append(-0.5)
    assert "length-mismatch" in ids_of(write(tmp_path / "log.jsonl", rows))


def test_rank_files_without_ids_that_repeat_each_other_are_duplicates(tmp_path: Path) -> None:
    rows = [
        {k: v for k, v in row.items() if k != "sequence_id"} for row in as_json(make(0, steps=1))
    ]
    paths = [write(tmp_path / f"rank_{rank}.jsonl", rows) for rank in range(2)]
    findings = evaluate(scan(open_log(paths)))
    evidence = next(f for f in findings if f.id == "duplicate-rows").evidence
    assert evidence["rows"] == len(rows)


def test_short_answers_that_repeat_honestly_are_no_duplicates(tmp_path: Path) -> None:
    row = as_json(make(0, rows=4, length=3, steps=1))[0]
    rows = [{**row, "sequence_id": f"row{i}"} for i in range(40)]
    nameless = [{k: v for k, v in row.items() if k != "sequence_id"} for row in rows]
    for name, log in (("ids", rows), ("nameless", nameless)):
        found_ids = ids_of(write(tmp_path / f"{name}.jsonl", log))
        assert not {"duplicate-rows", "repeated-padding"} & found_ids


def test_versions_of_minus_one_are_unknown(tmp_path: Path) -> None:
    rows = as_json(make(0), versions=lambda at: [-1] * len(at), train_version=lambda at: 7)
    found_ids = ids_of(write(tmp_path / "log.jsonl", rows))
    assert "staleness-not-separable" in found_ids
    assert "negative-lag" not in found_ids
