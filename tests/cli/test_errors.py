import json
import os
import signal
import subprocess
import time

import pytest

from m2po_lab import analyze
from m2po_lab.engines import Stop
from tests.cli.conftest import REAL, START, environment

TRL = REAL / "trl_grpo_bf16.jsonl"
GOOD = '{"rollout_log_probs": [-0.5, -1.0], "old_log_probs": [-0.4, -1.1]}\n'


@pytest.fixture
def files(tmp_path):
    """Inputs that cannot be used, and one that can."""
    (tmp_path / "good.jsonl").write_text(GOOD * 3, encoding="utf-8")
    (tmp_path / "bad.jsonl").write_text(GOOD + '{"rollout_log_probs": [-0.5,\n' + GOOD)
    (tmp_path / "prose.txt").write_text("no log\n" * 9, encoding="utf-8")
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    (tmp_path / "hollow").mkdir()
    (tmp_path / "broken.toml").write_text("x = = 1", encoding="utf-8")
    (tmp_path / "unknown.toml").write_text("drift_m3 = 1\n", encoding="utf-8")
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    (tmp_path / "negative.toml").write_text("drift_m2 = -1\n", encoding="utf-8")
    (tmp_path / "typed.toml").write_text('drift_m2 = "a"\n', encoding="utf-8")
    return tmp_path


UNUSABLE = [
    ("no such path", ["nowhere.jsonl"], "nowhere.jsonl"),
    ("a name with control characters", ["no\nwhere\x1b[2J"], "no where"),
    ("a glob without a match", ["*.parquet"], "*.parquet"),
    ("an empty directory", ["hollow"], "hollow"),
    ("an unknown format", ["prose.txt"], "prose.txt"),
    ("no readable row", ["empty.jsonl"], "empty.jsonl"),
    ("a malformed line in the middle", ["bad.jsonl"], "bad.jsonl:2"),
    ("an absent column", ["good.jsonl", "--columns", "old=nope"], "nope"),
    ("an unknown role", ["good.jsonl", "--columns", "odd=old_log_probs"], "odd"),
    ("an unknown format name", ["good.jsonl", "--format", "odd"], "odd"),
    ("a negative budget", ["good.jsonl", "--budget", "-1"], "--budget"),
    ("a clip that is no number", ["good.jsonl", "--clip", "x"], "--clip"),
    ("an unknown grouping", ["good.jsonl", "--by", "day"], "--by"),
    ("an unknown engine", ["good.jsonl", "--engine", "gpu"], "--engine"),
    ("an unknown severity", ["good.jsonl", "--fail-on", "info"], "--fail-on"),
    ("an unknown finding", ["good.jsonl", "--ignore", "low_tail"], "low-tail"),
    ("an unknown finding to explain", ["--explain", "lowtail"], "low-tail"),
    ("an unknown option", ["good.jsonl", "--bogus"], "--bogus"),
    ("no path", [], "PATH"),
    ("thresholds that are no TOML", ["good.jsonl", "--thresholds", "broken.toml"], "broken.toml"),
    ("an unknown threshold", ["good.jsonl", "--thresholds", "unknown.toml"], "drift_m2"),
    ("absent thresholds", ["good.jsonl", "--thresholds", "no.toml"], "no.toml"),
    ("a directory that cannot be made", ["good.jsonl", "--out", "file/report"], "file/report"),
    ("a file that cannot be written", ["good.jsonl", "--json", "absent/r.json"], "absent/r.json"),
    ("JSON to a directory", ["good.jsonl", "--json", "hollow"], "--json: hollow is a directory"),
    ("a report into a file", ["good.jsonl", "--out", "file"], "--out: file is no directory"),
    ("a clip below a ratio of 0", ["good.jsonl", "--clip", "1.5"], "--clip: '1.5'"),
    ("no finding to explain", ["--explain", ""], "--explain: ''"),
    ("a negative threshold", ["good.jsonl", "--thresholds", "negative.toml"], "is negative"),
    ("a threshold in words", ["good.jsonl", "--thresholds", "typed.toml"], "is a string"),
    ("an option for a file name", ["good.jsonl", "--json", "--quiet"], "--json"),
]


@pytest.mark.parametrize(
    ("arguments", "named"), [c[1:] for c in UNUSABLE], ids=[c[0] for c in UNUSABLE]
)
def test_unusable_is_one_line_with_place_value_remedy(call, files, arguments, named):
    done = call("analyze", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("m2po-lab: ")
    assert named in line
    assert line.isprintable()
    assert "Traceback" not in line
    assert "unexpected" not in line
    assert ";" in line or "Try --help" in line


def test_bad_rows_can_be_skipped_and_are_counted(call, files):
    done = call("analyze", "bad.jsonl", "--skip-bad-rows")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 unreadable" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [["convert", "good.jsonl"], ["demo"], ["toy", "run", "bandit"], ["toy", "figure", "bandit"]],
    ids=" ".join,
)
def test_every_command_refuses_a_file_where_it_wants_a_directory(call, files, arguments):
    done = call(*arguments, "--out", "file")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("m2po-lab: --out: file is no directory; ")


def test_an_unknown_command_is_one_line(call):
    done = call("analise", "x")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "analise" in done.stderr


def test_json_on_standard_output_stays_empty_when_the_input_is_unusable(run):
    done = run("analyze", "nowhere", "--json", "-")
    assert (done.returncode, done.stdout) == (2, "")


def test_version_and_bare_call(run):
    assert run("--version").stdout.strip()[0].isdigit()
    assert "analyze" in run().stdout


def test_a_reader_that_goes_away_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*START, "analyze", str(TRL)], stdout=writer, stderr=subprocess.PIPE, env=environment(),
        timeout=120,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def _interrupted(folder, rows, times):
    """Analyze a FIFO that gives some rows and then keeps silent; press Ctrl-C some times."""
    os.mkfifo(folder / "log.jsonl")
    with (
        subprocess.Popen(
            [*START, "analyze", "log.jsonl", "--format", "jsonl"],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        ) as process,
        (folder / "log.jsonl").open("w", encoding="utf-8") as log,
    ):
        log.write(GOOD * rows)
        log.flush()
        time.sleep(3)
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a FIFO")
def test_an_interrupt_leaves_a_partial_report_and_status_130(tmp_path):
    status, out, err = _interrupted(tmp_path, rows=100, times=1)
    assert (status, err) == (130, "")
    assert "PARTIAL" in out


def test_a_stopped_reading_keeps_what_was_read(tmp_path):
    (tmp_path / "a.jsonl").write_text(GOOD * 9000, encoding="utf-8")
    stop = Stop()

    def stop_at_once(rows, tokens):
        stop.requested = True

    report = analyze(tmp_path / "a.jsonl", stop=stop, progress=stop_at_once).to_dict()
    assert report["partial"] is True
    assert 0 < report["rows"]["kept"] < 9000
    assert analyze(tmp_path / "a.jsonl").to_dict()["partial"] is False


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_following_reports_new_files_and_ctrl_c_leaves_the_last_report(tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    (log / "0.jsonl").write_text(GOOD * 10, encoding="utf-8")
    with subprocess.Popen(
        [*START, "analyze", "log", "--follow", "--json", "r.json"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        _wait_for(tmp_path / "r.json", 10)
        (log / "1.jsonl").write_text(GOOD.replace("-0.5", "-0.6") * 5, encoding="utf-8")
        _wait_for(tmp_path / "r.json", 15)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert out.count("What was read") == 2


def _wait_for(path, rows, seconds=90):
    """Wait until a report counts so many rows."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if path.exists() and json.loads(path.read_text())["rows"]["read"] == rows:
            return
        time.sleep(0.2)
    pytest.fail(f"{path.name} never counted {rows} rows")


def test_following_does_not_mix_reports_on_standard_output(call, files):
    done = call("analyze", "good.jsonl", "--follow", "--json", "-")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
