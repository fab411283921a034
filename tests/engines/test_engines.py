"""Every engine gives the analysis of the whole log."""

import json
from pathlib import Path
from typing import Any

import pytest

from m2po_lab import analyze
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


def report(paths: list[Path], engine: str) -> str:
    return json.dumps(analyze(paths, engine=engine).to_dict(), allow_nan=False)


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """A log in six files of different length, in each of which numbers differ."""
    lines = (PATHOLOGIES / "01_stale_lag.jsonl").read_text().splitlines(keepends=True)
    bounds = [0, 3, 4, 20, 27, 41, len(lines)]
    paths = [tmp_path / f"part_{number}.jsonl" for number in range(6)]
    for path, start, end in zip(paths, bounds, bounds[1:], strict=False):
        path.write_text("".join(lines[start:end]))
    return paths


@pytest.mark.slow
def test_every_engine_gives_the_same_bytes(shards: list[Path]):
    assert report(shards, "local") == report(shards, "process")


def test_the_order_in_which_files_are_named_changes_no_byte(shards: list[Path]):
    orders = (shards, shards[::-1], shards[3:] + shards[:3])
    texts = {report(order, "local").replace(str(shards[0].parent), "") for order in orders}
    assert len(texts) == 1


@pytest.mark.slow
@pytest.mark.parametrize("with_ids", [True, False])
def test_a_copied_file_counts_once_whichever_worker_reads_it(shards: list[Path], with_ids: bool):
    if not with_ids:
        for path in shards:
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            text = "".join(json.dumps(without_ids(row)) + "\n" for row in rows)
            path.write_text(text)
    once = analyze(shards[:-1]).to_dict()["rows"]["kept"]
    shards[-1].write_bytes(shards[2].read_bytes())
    for engine in ("local", "process"):
        found = analyze(shards, engine=engine).to_dict()
        assert found["rows"]["kept"] == once
        assert found["rows"]["excluded"]["duplicate"] == 16


@pytest.mark.parametrize("with_ids", [True, False])
def test_parts_that_were_merged_unseen_say_what_counts_twice(shards: list[Path], with_ids: bool):
    if not with_ids:
        rows = [json.loads(line) for line in shards[2].read_text().splitlines()]
        shards[2].write_text("".join(json.dumps(without_ids(row)) + "\n" for row in rows))
    one = analyze(shards[2])
    other = analyze(shards[2])
    findings = {finding.id: finding for finding in one.merge(other).findings}
    said = findings["duplicate-rows"]
    assert said.evidence["counted_twice" if with_ids else "files_counted_twice"] > 0
    assert "COUNT TWICE" in said.message


def without_ids(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.endswith("_id")}
