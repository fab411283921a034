"""The same rows in two formats are counted, and the report says that they are twice there."""

import json
import shutil
from pathlib import Path

import pytest

from m2po_lab.api import analyze
from m2po_lab.logs.open import open_log
from tests.logs.helpers import DATA

VERL = DATA / "frameworks" / "verl"


def remarks(path: Path) -> list[str]:
    """What reading a whole log met."""
    log = open_log(path)
    assert sum(batch.n_rows for batch in log) > 0
    return [remark for entry in log.inputs for remark in entry.remarks if "same rows" in remark]


@pytest.fixture
def both(tmp_path: Path) -> Path:
    shutil.copytree(VERL / "dataproto", tmp_path / "run" / "dataproto")
    shutil.copytree(VERL / "tq", tmp_path / "run" / "tq")
    return tmp_path / "run"


def test_the_same_rows_in_two_formats_are_named(both: Path) -> None:
    (remark,) = remarks(both)
    assert "verl-dataproto" in remark
    assert "verl-transferqueue" in remark
    assert "both are counted" in remark


@pytest.mark.parametrize("engine", ["local", "process"])
def test_the_report_says_so_under_what_was_read(both: Path, engine: str) -> None:
    found = analyze(both, engine=engine)
    assert found.to_dict()["rows"]["kept"] == 64
    assert "hold the same rows without a common id" in " ".join(str(found).split())


def test_one_format_at_a_time_has_nothing_to_say(both: Path) -> None:
    assert remarks(both / "dataproto") == remarks(both / "tq") == []


def test_other_rows_in_another_format_are_no_twins(tmp_path: Path) -> None:
    shutil.copytree(VERL / "dataproto", tmp_path / "dataproto")
    row = {"rollout_log_probs": [-0.5, -1.0], "old_log_probs": [-0.4, -1.1]}
    (tmp_path / "log.jsonl").write_text(json.dumps(row) + "\n")
    assert remarks(tmp_path) == []


def test_a_damaged_first_file_is_left_to_the_reading(both: Path) -> None:
    first = both / "tq" / "step0_tq_batch.pt"
    first.write_bytes(first.read_bytes()[:-200])
    log = open_log(both, skip_bad_rows=True)
    assert sum(batch.n_rows for batch in log) >= 32
