"""What only the whole log shows is seen in files of any size, by every engine."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2po_lab import analyze
from m2po_lab.analysis import Options
from m2po_lab.engines import Growing, Watch, local, process
from m2po_lab.logs import open_log
from tests.analysis.compare import close

ROWS, LENGTH = 24, 12


def rows(seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    found = []
    for i in range(ROWS):
        n = LENGTH + int(rng.integers(0, 5))
        behavior = -rng.exponential(size=n) - 0.1
        old = np.minimum(behavior + 0.01 * rng.normal(size=n), 0.0)
        row = {"sequence_id": f"r{i}", "step": i // 8, "token_ids": list(range(n))}
        found.append(row | {"rollout_log_probs": behavior.tolist(), "old_log_probs": old.tolist()})
    return found


def mask_one_off(row: dict[str, Any]) -> dict[str, Any]:
    """The first token has no old log-prob, and the mask keeps it."""
    return {**row, "old_log_probs": [0.0, *row["old_log_probs"][1:]]}


def padded(row: dict[str, Any]) -> dict[str, Any]:
    """Filled up to one length, without a mask."""
    extra = LENGTH + 6 - len(row["token_ids"])
    fill = {name: [*row[name], *[0.0] * extra] for name in ("rollout_log_probs", "old_log_probs")}
    return {**row, **fill, "token_ids": [*row["token_ids"], *[0] * extra]}


def unlogged(row: dict[str, Any]) -> dict[str, Any]:
    """The sampler's column is full of zeros."""
    return {**row, "rollout_log_probs": [0.0] * len(row["token_ids"])}


def files(folder: Path, log: list[dict[str, Any]], each: int) -> list[Path]:
    folder.mkdir(exist_ok=True)
    paths = []
    for i in range(0, len(log), each):
        path = folder / f"part{i:03d}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in log[i : i + each]))
        paths.append(path)
    return paths


def numbers(report: dict[str, Any]) -> Any:
    return {name: entry for name, entry in report.items() if name not in ("inputs", "worst")}


SPOILT = [mask_one_off, padded, unlogged]


@pytest.mark.parametrize("spoil", SPOILT)
@pytest.mark.parametrize("each", [1, 3, 5])
def test_files_of_few_rows_are_judged_like_one_file(
    tmp_path: Path, spoil: Callable[..., Any], each: int
) -> None:
    log = [spoil(row) for row in rows()]
    whole = analyze(files(tmp_path / "one", log, ROWS)).to_dict()
    found = analyze(files(tmp_path / "many", log, each)).to_dict()
    assert found["tokens"] == whole["tokens"]
    assert sum(whole["tokens"]["excluded"].values()) >= ROWS
    assert [f["id"] for f in found["findings"]] == [f["id"] for f in whole["findings"]]
    for ratio, tables in whole["ratios"].items():
        assert found["ratios"][ratio]["all"]["m2"] == pytest.approx(tables["all"]["m2"])


@pytest.mark.parametrize("spoil", SPOILT)
def test_what_is_left_is_what_was_right(tmp_path: Path, spoil: Callable[..., Any]) -> None:
    report = analyze(files(tmp_path, [spoil(row) for row in rows()], 2)).to_dict()
    ratio = report["ratios"]["proximal/behavior"]["all"]
    if spoil is unlogged:
        assert ratio["n"] == 0
        return
    d = [
        np.subtract(row["old_log_probs"], row["rollout_log_probs"])[spoil is mask_one_off :]
        for row in rows()
    ]
    assert ratio["n"] == sum(map(len, d))
    assert ratio["m2"] == pytest.approx(float(np.mean(np.concatenate(d) ** 2)))


def test_a_growing_log_says_the_same_as_the_finished_one(tmp_path: Path) -> None:
    log = [mask_one_off(row) for row in rows()]
    growing = Growing(lambda: open_log(tmp_path / "log"), Options())
    files(tmp_path / "log", log[:4], 4)
    assert growing.refresh(Watch()) is not None
    files(tmp_path / "log", log, 4)
    growing.refresh(Watch())
    last = growing.refresh(Watch())
    assert last is not None
    assert numbers(last.to_dict()) == numbers(analyze(tmp_path / "log").scan.to_dict())


def test_more_files_than_parts_differ_by_rounding_alone(tmp_path: Path) -> None:
    log = [
        {**row, "sequence_id": f"{i} {row['sequence_id']}", "step": i}
        for i in range(3)
        for row in rows(i)
    ]
    files(tmp_path / "log", log, 1)
    followed = Growing(lambda: open_log(tmp_path / "log"), Options()).refresh(Watch())
    assert followed is not None
    assert len(open_log(tmp_path / "log").parts(64)) < len(log)
    close(numbers(followed.to_dict()), numbers(analyze(tmp_path / "log").scan.to_dict()))


@pytest.mark.slow
def test_a_pool_of_processes_reads_again_in_one(tmp_path: Path) -> None:
    paths = files(tmp_path, [padded(row) for row in rows()], 4)
    one = local(open_log(paths), Options(), Watch()).to_dict()
    assert process(open_log(paths), Options(), Watch(), workers=2).to_dict() == one
    assert one["tokens"]["excluded"]["zero_filled"] > 0


def test_seven_rows_are_no_verdict_and_the_report_says_that_nothing_was_judged(
    tmp_path: Path,
) -> None:
    for spoil in (mask_one_off, padded):
        report = analyze(files(tmp_path, [spoil(row) for row in rows()[:7]], 7)).to_dict()
        assert sum(report["tokens"]["excluded"].values()) == 0
        needs = {entry["what"]: entry["needs"] for entry in report["not_computable"]}
        assert needs["whether the mask is one token off"] == "8 rows of 3 kept tokens"
        assert "whether zeros at the ends of rows are padding" in needs
    enough = analyze(files(tmp_path / "b", rows()[:8], 8)).to_dict()
    assert not any("whether" in entry["what"] for entry in enough["not_computable"])


def test_one_spoilt_file_among_sound_ones_is_named(tmp_path: Path) -> None:
    sound, spoilt = rows(1), [mask_one_off(row) for row in rows(2)]
    paths = files(tmp_path / "a", sound + sound[:0], ROWS)
    names = [{**row, "sequence_id": f"s{i}"} for i, row in enumerate(spoilt)]
    paths += files(tmp_path / "b", names[:9], 9)
    report = analyze(paths).to_dict()
    (said,) = [f for f in report["findings"] if f["id"] == "mask-shifted"]
    assert said["evidence"]["rows"] == said["evidence"]["tokens_excluded"] == 9
    assert report["ratios"]["proximal/behavior"]["all"]["m2"] < 1e-3
