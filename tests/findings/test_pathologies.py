"""Every synthetic fault yields its finding and its numbers; healthy files yield none."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from m2po_lab.analysis.scan import scan
from m2po_lab.findings import Finding, evaluate
from m2po_lab.logs import open_log

DATA = Path(__file__).parent.parent / "data" / "pathologies"
INDEX: dict[str, Any] = json.loads((DATA / "INDEX.json").read_text())
SICK = [name for name, entry in INDEX.items() if not entry["healthy"]]
HEALTHY = [name for name, entry in INDEX.items() if entry["healthy"]]
SAME = {"M2": "m2", "k1": "k1", "k3": "k3", "chi2": "chi2", "ess": "ess_fraction", "mean": "mean"}


@cache
def read(name: str) -> tuple[dict[str, Any], list[Finding]]:
    analysis = scan(open_log(DATA / f"{name}.jsonl"))
    return analysis.to_dict(), evaluate(analysis)


@pytest.mark.parametrize("name", SICK)
def test_a_sick_file_yields_the_finding_it_was_made_for(name: str) -> None:
    assert INDEX[name]["finding"] in {finding.id for finding in read(name)[1]}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_file_yields_no_error_and_no_warning(name: str) -> None:
    assert [finding for finding in read(name)[1] if finding.severity != "info"] == []


@pytest.mark.parametrize("name", [name for name in INDEX if INDEX[name]["correct"]])
def test_numbers_after_exclusions_are_those_of_the_index(name: str) -> None:
    report, right = read(name)[0], INDEX[name]["correct"]
    stats = report["ratios"]["proximal/behavior"]["all"]
    assert stats["n"] == right["n"]
    for theirs, ours in SAME.items():
        assert math.isclose(stats[ours], right[theirs], rel_tol=1e-3, abs_tol=1e-9), theirs


@pytest.mark.parametrize(
    ("name", "kind"),
    [("10_tool_tokens_unmasked", "zero_filled"), ("27_sentinel_one", "positive")],
)
def test_excluded_tokens_are_counted_under_their_reason(name: str, kind: str) -> None:
    assert read(name)[0]["tokens"]["excluded"][kind] == INDEX[name]["excluded_tokens"]


def test_duplicates_are_counted_once_and_their_tokens_reported() -> None:
    report, findings = read("23_rank_duplicates")
    assert report["rows"]["excluded"]["duplicate"] == 32
    assert report["tokens"]["kept"] == INDEX["23_rank_duplicates"]["correct"]["n"]
    duplicate = next(f for f in findings if f.id == "duplicate-rows")
    assert duplicate.evidence["tokens"] == INDEX["23_rank_duplicates"]["excluded_tokens"]


def test_non_finite_values_are_counted_by_kind() -> None:
    finding = next(f for f in read("09_none_nan_inf")[1] if f.id == "non-finite")
    assert finding.evidence["tokens"] == INDEX["09_none_nan_inf"]["correct"]["nonfinite"]
    kinds = {"behavior nan": 22, "behavior +inf": 22, "behavior -inf": 22, "behavior null": 22}
    assert finding.evidence["by_column"] == kinds
    assert sum(finding.evidence["positions"].values()) == 88


def test_shifted_columns_take_their_ratios_with_them_and_no_other() -> None:
    findings = [f for f in read("04_shift_by_one")[1] if f.id == "shift-by-one"]
    assert {f.evidence["ratio"] for f in findings} == {"current/behavior", "proximal/behavior"}
    right = INDEX["04_shift_by_one"]["corr"]
    seen = next(f for f in findings if f.evidence["ratio"] == "proximal/behavior").evidence
    assert seen["correlation"]["+1"] == pytest.approx(right["1"], abs=1e-3)
    assert seen["correlation"]["0"] == pytest.approx(right["0"], abs=0.01)


def test_lag_table_of_the_stale_file_is_in_the_evidence() -> None:
    findings = [f for f in read("01_stale_lag")[1] if f.id == "staleness-drift"]
    seen = next(f for f in findings if f.evidence["ratio"] == "proximal/behavior").evidence
    by_lag = {str(row["lag"]): row for row in seen["by_lag"]}
    for lag, right in INDEX["01_stale_lag"]["by_lag"].items():
        assert by_lag[lag]["n"] == right["n"]
        assert by_lag[lag]["m2"] == pytest.approx(right["M2"], rel=1e-3)
    assert seen["low"] < seen["m2"] < seen["high"]


def test_evidence_is_strict_json() -> None:
    for name in INDEX:
        for finding in read(name)[1]:
            json.dumps(finding.to_dict(), allow_nan=False)
