import gzip
import json
import shutil
import subprocess

import jsonschema
import pytest

from m2po_lab.report.document import schema
from tests.cli.conftest import REAL, START, environment

TRL, VERL = REAL / "trl_grpo_bf16.jsonl", REAL / "verl_grpo_fp16.jsonl"
GOLDEN = {
    TRL: {"n": 502, "m2": 1.0265, "k1": 0.152, "k3": 0.126, "chi2": -0.0002, "ess_fraction": 0.949},
    VERL: {
        "n": 3541, "m2": 0.3432, "k1": 0.0413, "k3": 0.0367, "chi2": 0.0027, "ess_fraction": 0.988,
    },
}  # fmt: skip
LARGEST = {TRL: 10.68, VERL: 13.36}
BY_LAG = {
    TRL: [(0, 124, 0.00159928), (1, 127, 0.334205), (2, 124, 2.47696), (3, 127, 1.30342)],
    VERL: [(0, 910, 2.7824e-6), (1, 930, 0.131594), (2, 912, 0.458311), (3, 789, 0.855531)],
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The JSON of both real logs, from the command."""
    folder = tmp_path_factory.mktemp("reports")
    found = {}
    for log in GOLDEN:
        done = subprocess.run(
            [*START, "analyze", str(log), "--json", "-"],
            cwd=folder, env=environment(), capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        found[log] = json.loads(done.stdout, parse_constant=pytest.fail)
    return found


@pytest.mark.parametrize("log", GOLDEN, ids=lambda p: p.stem)
def test_the_numbers_of_the_real_runs(reports, log):
    stats = reports[log]["ratios"]["current/behavior"]["all"]
    for name, value in GOLDEN[log].items():
        digits = len(str(value).partition(".")[2])
        assert round(stats[name], digits) == value, name
    assert round(max(-stats["log_ratio_min"], stats["log_ratio_max"]), 2) == LARGEST[log]


@pytest.mark.parametrize("log", GOLDEN, ids=lambda p: p.stem)
def test_the_table_by_lag_of_the_real_runs(reports, log):
    lines = reports[log]["ratios"]["current/behavior"]["by_lag"]
    assert [(line["lag"], line["n"]) for line in lines] == [(lag, n) for lag, n, _ in BY_LAG[log]]
    for line, (_, _, m2) in zip(lines, BY_LAG[log], strict=True):
        assert line["m2"] == pytest.approx(m2, rel=1e-5)


@pytest.mark.parametrize("log", GOLDEN, ids=lambda p: p.stem)
def test_the_json_follows_the_schema_that_ships(reports, log):
    jsonschema.Draft202012Validator(schema()).validate(reports[log])


def test_without_advantages_nothing_is_made_up(reports):
    ratio = reports[VERL]["ratios"]["current/behavior"]
    assert (ratio["active"], ratio["nonzero_advantage"], ratio["by_quadrant"]) == (None,) * 3
    assert any(entry["needs"] == "advantage" for entry in reports[VERL]["not_computable"])


def test_the_collapse_of_the_trl_run_is_named_although_ess_stays_high(reports):
    found = {f["id"] for f in reports[TRL]["findings"]}
    assert {"moving-without-signal", "low-tail", "negative-side-drift"} <= found
    steps = reports[TRL]["ratios"]["current/behavior"]["by_step"]
    assert min(step["ess_fraction"] for step in steps) > 0.8


def test_the_report_on_a_pipe_is_plain_text_of_at_most_100_columns(run):
    done = run("analyze", TRL)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "1.027" in done.stdout


def test_columns_says_how_wide_a_line_may_be(call):
    done = call("analyze", TRL, COLUMNS="80")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_an_output_that_knows_only_ascii_gets_question_marks(run):
    done = run("analyze", TRL, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()


def test_json_to_a_file_leaves_the_report_on_standard_output(run, tmp_path):
    done = run("analyze", TRL, "--json", "r.json")
    assert done.stdout.startswith("M2PO Lab")
    report = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert report["schema"] == "m2po-lab/report/1"


def test_quiet_prints_nothing_and_still_writes(call, tmp_path):
    done = call("analyze", TRL, "--quiet", "--json", "r.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "r.json").exists()


def test_out_holds_page_json_text_and_figures(call, tmp_path):
    done = call("analyze", TRL, "--out", "new/report")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("The report lies in new/report")
    written = {p.name for p in (tmp_path / "new" / "report").iterdir()}
    assert written == {"report.html", "report.json", "report.txt", "figures"}
    assert len(list((tmp_path / "new" / "report" / "figures").glob("*.png"))) >= 8


def test_fail_on_sets_the_status_and_keeps_the_report(call):
    assert call("analyze", TRL, "--fail-on", "error").returncode == 0
    warned = call("analyze", TRL, "--fail-on", "warning")
    assert (warned.returncode, warned.stderr) == (1, "")
    assert "What to look at" in warned.stdout


def test_ignored_findings_neither_show_nor_fail(call):
    names = "in-step-drift,low-tail,high-tail,negative-side-drift,moving-without-signal"
    done = call("analyze", TRL, "--fail-on", "warning", "--ignore", names)
    assert done.returncode == 0
    assert "low-tail:" not in done.stdout


def test_thresholds_from_a_file_change_what_fires(call, tmp_path):
    (tmp_path / "t.toml").write_text("drift_m2 = 1e9\nmoving_m2 = 1e9\n", encoding="utf-8")
    done = call("analyze", TRL, "--thresholds", "t.toml", "--json", "-")
    found = {f["id"] for f in json.loads(done.stdout)["findings"]}
    assert not found & {"low-tail", "negative-side-drift", "moving-without-signal"}


def test_clip_and_budget_reach_the_what_if(call):
    done = call("analyze", TRL, "--clip", "0.1,0.3", "--budget", "1e9", "--json", "-")
    objectives = json.loads(done.stdout)["objectives"]
    assert objectives["ppo"]["params"]["eps_low"] == 0.1
    assert objectives["ppo"]["params"]["eps_high"] == 0.3
    assert objectives["m2po"]["masked"] == 0


def test_by_chooses_the_tables(call):
    report = json.loads(call("analyze", TRL, "--by", "lag", "--json", "-").stdout)
    ratio = report["ratios"]["current/behavior"]
    assert ratio["by_lag"] is not None
    assert ratio["by_step"] is None


def test_a_compressed_log_says_the_same(call, tmp_path, reports):
    with TRL.open("rb") as plain, gzip.open(tmp_path / "log.jsonl.gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    report = json.loads(call("analyze", "log.jsonl.gz", "--json", "-").stdout)
    assert report["ratios"] == reports[TRL]["ratios"]


def test_a_pool_of_processes_says_the_same(call, tmp_path, reports):
    lines = TRL.read_text(encoding="utf-8").splitlines(keepends=True)
    for part in range(4):
        text = "".join(lines[part * 32 : part * 32 + 32])
        (tmp_path / f"part{part}.jsonl").write_text(text, encoding="utf-8")
    done = call("analyze", "part*.jsonl", "--engine", "process", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)["ratios"]["current/behavior"]
    expected = reports[TRL]["ratios"]["current/behavior"]
    for name, value in expected["all"].items():
        assert found["all"][name] == pytest.approx(value, rel=1e-12), name


def test_a_converted_log_says_the_same(call, reports):
    done = call("convert", TRL, "--out", "native")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("128 rows, 502 tokens written to native")
    found = json.loads(call("analyze", "native", "--json", "-").stdout)["ratios"]
    assert found["current/behavior"]["all"]["n"] == 502
    expected = reports[TRL]["ratios"]["current/behavior"]["all"]["m2"]
    assert found["current/behavior"]["all"]["m2"] == pytest.approx(expected, rel=1e-6)


def test_demo_needs_no_argument_and_says_where_the_report_lies(run, tmp_path):
    done = run("demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert "m2po-lab-demo/report.html" in done.stdout.splitlines()[-1]
    assert (tmp_path / "m2po-lab-demo" / "report.html").exists()
    assert "m2po-lab-demo/bandit/report.html" in done.stdout
    assert (tmp_path / "m2po-lab-demo" / "bandit" / "report.html").exists()
    said = "The reward of its 4 rollout batches: 0.94, 1.00, 0.19, 0.00."
    assert said in done.stdout
    rows = json.loads((tmp_path / "m2po-lab-demo" / "figures" / "by_step.json").read_text())["rows"]
    drawn = [row["reward"] for row in rows if row["reward"] is not None]
    assert [f"{reward:.2f}" for reward in drawn] == ["0.94", "1.00", "0.19", "0.00"]


def test_explain_needs_no_log(call):
    done = call("analyze", "--explain", "low-tail")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("low-tail (warning): ")
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_compare_puts_runs_side_by_side(call, tmp_path):
    done = call("compare", TRL, VERL, "--out", "cmp", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["ratio"] == "current/behavior"
    assert {p.name for p in (tmp_path / "cmp").iterdir()} >= {"compare.html", "compare.json"}
    shown = call("compare", TRL, VERL)
    assert "B against A: current/behavior, all tokens" in shown.stdout


def test_compare_needs_two_runs(call):
    done = call("compare", TRL)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
