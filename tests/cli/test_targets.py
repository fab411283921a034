"""Where reports are written: files, links, pipes, devices, and a standard output that is gone."""

import json
import os
import stat
import subprocess
from pathlib import Path
from threading import Thread

import pytest

from m2po_lab.report.document import write_bytes
from tests.cli.conftest import REAL, START, environment

TRL = REAL / "trl_grpo_bf16.jsonl"
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.is_char_device(), reason="needs /dev/full")
needs_fifo = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a FIFO")


def shell(folder, line):
    """Run a shell line in which "$@" is the command; capture both outputs."""
    return subprocess.run(
        ["sh", "-c", line, "sh", *START], cwd=folder, env=environment(LOG=str(TRL)),
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@needs_fifo
def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_bytes(pipe, b"content")
    reader.join(timeout=10)
    assert got == [b"content"]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_device_is_written_into_and_stays_a_device():
    before = Path(os.devnull).lstat()
    write_bytes(Path(os.devnull), b"content")
    assert (Path(os.devnull).lstat().st_ino, stat.S_ISCHR(before.st_mode)) == (before.st_ino, True)


def test_a_link_stays_and_the_file_behind_it_is_written(tmp_path):
    (tmp_path / "file").write_bytes(b"before")
    (tmp_path / "link").symlink_to("file")
    write_bytes(tmp_path / "link", b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"after"


def test_an_error_names_the_target_and_leaves_no_temporary_file(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_bytes(tmp_path / "folder", b"content")
    assert caught.value.filename == str(tmp_path / "folder")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
@pytest.mark.parametrize("redirected", ["| cat", "> out; cat out"])
def test_json_to_another_name_of_standard_output_is_json_alone(tmp_path, redirected):
    done = shell(tmp_path, f'"$@" analyze "$LOG" --json /dev/stdout {redirected}')
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["schema"] == "m2po-lab/report/1"


GONE = [
    ("a closed output", 'analyze "$LOG" >&-', "standard output: is closed"),
    ("JSON to a closed output", 'analyze "$LOG" --json - >&-', "standard output: is closed"),
    ("a full output", 'analyze "$LOG" >/dev/full', "standard output: No space left"),
    ("JSON to a full output", 'analyze "$LOG" --json - >/dev/full', "standard output: No space"),
    ("help to a full output", "--help >/dev/full", "No space left on device"),
    ("a full device", 'analyze "$LOG" --quiet --json /dev/full', "/dev/full: No space left"),
]


@needs_full
@pytest.mark.parametrize(("line", "said"), [c[1:] for c in GONE], ids=[c[0] for c in GONE])
def test_an_output_that_takes_nothing_is_one_line(tmp_path, line, said):
    done = shell(tmp_path, f'"$@" {line}')
    assert done.returncode == 2
    (only,) = done.stderr.splitlines()
    assert only.startswith(f"m2po-lab: {said}")
    assert ";" in only
    assert "bug" not in only
    assert FULL.is_char_device()


def test_without_a_standard_output_files_are_still_written(tmp_path):
    done = shell(tmp_path, '"$@" analyze "$LOG" --quiet --json r.json >&-')
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["rows"]["kept"] == 128


def test_a_closed_standard_error_changes_nothing(tmp_path):
    done = shell(tmp_path, '"$@" analyze "$LOG" 2>&-')
    assert done.returncode == 0
    assert done.stdout.startswith("M2PO Lab")
