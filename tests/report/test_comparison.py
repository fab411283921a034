import json
import re
from pathlib import Path

import pytest

from m2po_lab import analyze
from m2po_lab.report.compared import document
from m2po_lab.report.comparison import Run, compare_runs
from m2po_lab.report.directory import write_comparison
from m2po_lab.report.document import dumps
from m2po_lab.report.items import View
from m2po_lab.report.terminal import write

REAL = Path(__file__).resolve().parents[1] / "data" / "real"


def run_of(path, name=None):
    analysis = analyze(path)
    return Run(name or str(path), analysis.scan, analysis.to_dict())


@pytest.fixture(scope="module")
def trl():
    return run_of(REAL / "trl_grpo_bf16.jsonl", "trl")


@pytest.fixture(scope="module")
def verl():
    return run_of(REAL / "verl_grpo_fp16.jsonl", "verl")


def test_a_run_does_not_differ_from_itself(trl):
    found = compare_runs([trl, trl])
    for line in [*found["differences"], *found["by_lag"]]:
        assert line["difference"] == 0
        if line["statistic" if "statistic" in line else "lag"] in ("m2", "ess_fraction"):
            assert (line["low"], line["high"]) == (0, 0)


def test_differences_are_the_other_run_minus_the_first_within_their_interval(trl, verl):
    found = compare_runs([trl, verl])
    back = compare_runs([verl, trl])
    m2 = next(d for d in found["differences"] if d["statistic"] == "m2")
    reverse = next(d for d in back["differences"] if d["statistic"] == "m2")
    expected = [r.report["ratios"]["current/behavior"]["all"]["m2"] for r in (trl, verl)]
    assert (m2["first"], m2["second"]) == tuple(expected)
    assert m2["difference"] == pytest.approx(expected[1] - expected[0])
    assert m2["low"] < m2["difference"] < m2["high"]
    assert (reverse["low"], reverse["high"]) == pytest.approx((-m2["high"], -m2["low"]))


def test_only_lags_and_token_sets_that_both_runs_have_are_compared(trl, verl):
    found = compare_runs([trl, verl])
    assert [line["lag"] for line in found["by_lag"]] == [0, 1, 2, 3]
    assert {line["set"] for line in found["differences"]} == {"all"}


def test_runs_without_a_common_ratio_are_said_to_have_none(trl, tmp_path):
    path = tmp_path / "old.jsonl"
    path.write_text('{"rollout_log_probs": [-0.5], "old_log_probs": [-0.4]}\n' * 9)
    found = compare_runs([trl, run_of(path)])
    assert found["ratio"] is None
    assert "Not computable" in write(document(found, View()))


def test_a_comparison_is_strict_json_and_fits_the_terminal(trl, verl):
    found = compare_runs([trl, verl, trl])
    assert json.loads(dumps(found))["schema"] == "m2po-lab/compare/1"
    for width in (60, 80, 100):
        lines = write(document(found, View()), width=width).splitlines()
        assert max(map(len, lines)) <= width


def test_markup_in_a_name_stays_text_on_the_page(trl, verl, tmp_path):
    hostile = Run("<script>$x_{^$</script>", verl.scan, verl.report)
    place = write_comparison(compare_runs([trl, hostile]), tmp_path)
    text = place.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "figure-compare_by_lag" in text
    assert (tmp_path / "figures" / "compare_by_step.csv").exists()


def test_a_comparison_says_which_objectives_it_leaves_out_and_why(trl, verl):
    said = " ".join(write(document(compare_runs([trl, verl]), View())).split())
    tables = [run.report["objectives"] for run in (trl, verl)]
    common = [name for name in tables[0] if all(table[name] for table in tables)]
    assert f"{len(common)} of {len(tables[0])} objectives can be computed on every run." in said
    missing = verl.report["not_computable"]
    gone = [e for e in missing if e["what"].startswith("objectives/")]
    n = sum(e["needs"] == "advantage" for e in gone)
    assert n > 10
    assert re.search(rf"B lacks [^.]*advantage \(for {n} of them\)", said)
    assert re.search(r"A lacks [^.]*entropy \(for \d of them\)", said)


def test_runs_are_called_by_their_short_names_unless_these_are_the_same(trl):
    def title(*names):
        return document(compare_runs([Run(n, trl.scan, trl.report) for n in names]), View()).title

    assert title("/runs/one/a.jsonl", "/runs/two/b.jsonl") == "a.jsonl against b.jsonl"
    same = "/runs/one/a.jsonl against /runs/two/a.jsonl"
    assert title("/runs/one/a.jsonl", "/runs/two/a.jsonl") == same
