"""The literal tables: complete, consistent, and refusing what they do not know."""

from pathlib import Path

import pytest

from m2po_lab.findings import (
    CATALOG,
    DEFAULT,
    TESTS,
    THRESHOLDS,
    evaluate,
    explain,
    load_thresholds,
)
from tests.findings import sick
from tests.findings.synthetic import analyzed

SEVERITY = {
    "error": """shift-by-one mask-shifted length-mismatch retokenised zero-filled-log-probs
        positive-log-probs sentinel-value non-finite duplicate-rows negative-lag
        confident-disagreement weights-not-synced temperature-mismatch""",
    "warning": """ratio-identically-one lag-jump staleness-drift in-step-drift engine-mismatch
        truncated-support truncated-weights rare-outliers two-populations low-tail high-tail
        negative-side-drift clip-below-noise-floor sequence-product position-growth length-bias
        entropy-collapse no-learning-signal moving-without-signal collapse-risk groups-broken""",
    "info": """missing-log-probs empty-rows repeated-padding bypass-mode low-precision-log
        mixed-versions staleness-not-separable over-budget""",
}


def test_the_catalog_has_every_id_with_its_severity() -> None:
    wanted = {name: severity for severity, names in SEVERITY.items() for name in names.split()}
    assert {name: entry.severity for name, entry in CATALOG.items()} == wanted


def test_every_id_has_one_rule_in_the_order_of_the_catalog() -> None:
    assert list(TESTS) == list(CATALOG)


@pytest.mark.parametrize("name", list(CATALOG))
def test_every_entry_says_what_it_tests_what_to_do_and_where_it_comes_from(name: str) -> None:
    entry = CATALOG[name]
    assert all((entry.title, entry.rule, entry.advice, entry.source))
    assert not entry.title.endswith(".")
    for part in (entry.title, entry.rule, entry.advice, entry.source):
        assert part in explain(name)


def test_explaining_what_does_not_exist_lists_what_does() -> None:
    with pytest.raises(ValueError, match="no finding 'low-tide'; one of shift-by-one"):
        explain("low-tide")


def test_every_threshold_has_a_meaning_and_a_source() -> None:
    assert dict(DEFAULT) == {name: t.value for name, t in THRESHOLDS.items()}
    assert all(t.meaning and t.source for t in THRESHOLDS.values())


def test_every_threshold_is_read_by_a_rule() -> None:
    package = Path(__file__).parents[2] / "m2po_lab" / "findings"
    text = "".join(path.read_text() for path in package.glob("*.py") if path.stem != "thresholds")
    assert [name for name in THRESHOLDS if f'"{name}"' not in text] == []


def test_thresholds_from_a_file_change_the_verdict(tmp_path: Path) -> None:
    path = tmp_path / "thresholds.toml"
    path.write_text("floor_m2 = 0.5\n")
    analysis = analyzed(sick.mismatched(0))
    assert "engine-mismatch" in {f.id for f in evaluate(analysis)}
    changed = evaluate(analysis, thresholds=load_thresholds(path))
    assert "engine-mismatch" not in {f.id for f in changed}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drift_m3 = 1", "did you mean drift_m2"),
        ("drift_m2 = 'high'", "give a number"),
        ("drift_m2 = true", "give a number"),
        ("drift_m2 = nan", "give a number"),
        ("drift_m2 =", "write lines such as"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "thresholds.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_thresholds(path)


def test_ignored_findings_stay_out_and_unknown_ones_are_refused() -> None:
    analysis = analyzed(sick.mismatched(0))
    left = evaluate(analysis, ignore=["engine-mismatch"])
    assert "engine-mismatch" not in {f.id for f in left}
    assert left
    with pytest.raises(ValueError, match="no finding 'engine'"):
        evaluate(analysis, ignore=["engine"])


def test_errors_come_before_warnings_and_those_before_notes() -> None:
    order = ["error", "warning", "info"]
    ranks = [order.index(f.severity) for f in evaluate(analyzed(sick.unsynced(0)))]
    assert len(set(ranks)) == 3
    assert ranks == sorted(ranks)
