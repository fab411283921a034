"""A log that grows: only what is complete and new is read, and the result is that of the whole."""

from pathlib import Path

import pytest

import m2po_lab
from m2po_lab.analysis import Options
from m2po_lab.api import follow
from m2po_lab.engines import Growing, Stop, Watch
from m2po_lab.logs import open_log
from m2po_lab.logs.errors import UnreadableLogError
from tests.analysis.compare import close

LOG = Path(__file__).parent.parent / "data" / "real" / "trl_grpo_bf16.jsonl"
LINES = LOG.read_text(encoding="utf-8").splitlines(keepends=True)


def write(folder: Path, name: str, first: int, last: int) -> None:
    (folder / name).write_text("".join(LINES[first:last]), encoding="utf-8")


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    write(tmp_path, "part0.jsonl", 0, 40)
    return Growing(lambda: open_log(tmp_path), Options())


def read(counts: list[int]) -> Watch:
    return Watch(progress=lambda rows, tokens: counts.append(rows))


def test_a_new_file_counts_once_it_has_stopped_changing_and_old_ones_are_not_read_again(
    growing: Growing, tmp_path: Path
):
    counts: list[int] = []
    first = growing.refresh(read(counts))
    assert first is not None
    assert (first.rows["read"], sum(counts)) == (40, 40)
    assert growing.refresh(read(counts)) is None
    write(tmp_path, "part1.jsonl", 40, 60)
    assert growing.refresh(read(counts)) is None
    write(tmp_path, "part1.jsonl", 40, 128)
    assert growing.refresh(read(counts)) is None
    whole = growing.refresh(read(counts))
    assert whole is not None
    assert (whole.rows["read"], sum(counts)) == (128, 128)
    close(whole.to_dict(), m2po_lab.analyze(tmp_path).scan.to_dict())


def test_a_file_that_changes_is_read_again_and_one_that_goes_away_is_forgotten(
    growing: Growing, tmp_path: Path
):
    growing.refresh(Watch())
    write(tmp_path, "part0.jsonl", 0, 50)
    write(tmp_path, "part1.jsonl", 50, 60)
    looks = [growing.refresh(Watch()) for _ in range(2)]
    assert looks[0] is None
    assert looks[1] is not None
    assert looks[1].rows["read"] == 60
    (tmp_path / "part0.jsonl").unlink()
    left = growing.refresh(Watch())
    assert left is not None
    assert left.rows["read"] == 10


def test_rows_in_two_files_are_counted_once(growing: Growing, tmp_path: Path):
    write(tmp_path, "part1.jsonl", 20, 60)
    found = growing.refresh(Watch())
    assert found is not None
    assert found.to_dict()["rows"]["excluded"]["duplicate"] == 20
    assert found.rows["kept"] == 60


def test_an_empty_directory_is_waited_for_and_an_absent_one_is_refused(tmp_path: Path):
    stop = Stop()
    reports = follow(tmp_path, seconds=0.01, stop=stop, progress=lambda *_: None)
    write(tmp_path, "part0.jsonl", 0, 8)
    first = next(reports)
    assert first.to_dict()["rows"]["read"] == 8
    stop.requested = True
    assert list(reports) == []
    with pytest.raises(UnreadableLogError):
        next(follow(tmp_path / "absent"))


def test_following_knows_the_options_of_analyze(tmp_path: Path):
    write(tmp_path, "part0.jsonl", 0, 128)
    analysis = next(follow(tmp_path, ignore=("low-tail",), budget=1e9))
    assert "low-tail" not in {finding.id for finding in analysis.findings}
    assert analysis.to_dict()["objectives"]["m2po"]["masked"] == 0
    with pytest.raises(TypeError, match="colour"):
        next(follow(tmp_path, colour="red"))
