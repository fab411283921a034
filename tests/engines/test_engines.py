"""Every engine gives the analysis of the whole log."""

from pathlib import Path

import pytest

from m2po_lab.analysis import Options
from m2po_lab.engines import Watch, local, process
from m2po_lab.logs import open_log
from m2po_lab.logs.errors import UnreadableLogError
from tests.analysis.compare import close

PATHOLOGIES = Path(__file__).parent.parent / "data" / "pathologies"
BROKEN = '{"sequence_id": "x", "token_ids": [1], "rollout_log_probs": [-1.0], "log_probs": ['


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of three files, one of them cut in the middle of its only row."""
    for name in ("01_stale_lag", "02_engine_mismatch"):
        source = PATHOLOGIES / f"{name}.jsonl"
        (tmp_path / source.name).write_bytes(source.read_bytes())
    (tmp_path / "cut.jsonl").write_text(BROKEN)
    return tmp_path


@pytest.mark.slow
def test_a_pool_of_processes_gives_the_report_of_one_process(folder: Path):
    one = local(open_log(folder), Options(), Watch())
    many = process(open_log(folder), Options(), Watch(), workers=2)
    close(one.to_dict(), many.to_dict())
    assert one.rows["read"] == 96


@pytest.mark.slow
def test_a_log_without_a_readable_row_is_unreadable_in_a_pool_too(tmp_path: Path):
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(BROKEN)
    with pytest.raises(UnreadableLogError):
        process(open_log(tmp_path), Options(), Watch(), workers=2)
