"""Converting to the native log keeps what the format can hold and says what it cannot."""

from pathlib import Path

import numpy as np
import pytest

from m2po_lab.logs.convert import convert
from m2po_lab.logs.errors import UnreadableLogError
from tests.logs.helpers import DATA, count_and_m2, read

LOGS = sorted((DATA / "pathologies").glob("*.jsonl")) + sorted((DATA / "real").glob("*.jsonl"))


@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.stem)
def test_a_converted_log_reads_as_the_original_to_float32(path: Path, tmp_path: Path) -> None:
    convert(path, tmp_path)
    (before, _), (after, _) = read(path), read(tmp_path)
    assert after.present() == before.present()
    assert after.lengths.tolist() == before.lengths.tolist()
    for name in before.present():
        a, b = (np.asarray(getattr(x, name)).astype(np.float32) for x in (before, after))
        assert np.array_equal(a, b, equal_nan=True), name
    for name in ("row_id", "group_id", "step", "train_version", "unaligned", "finish_reason"):
        assert np.array_equal(getattr(before.rows, name), getattr(after.rows, name)), name
    for name in ("nulls", "length_difference"):
        a, b = getattr(before.rows, name), getattr(after.rows, name)
        assert a.keys() == b.keys()
        assert all(np.array_equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize(
    ("layout", "ratio"),
    [
        ("verl/dataproto", "proximal/behavior"),
        ("slime/train_data", "proximal/behavior"),
        ("prime-rl", "current/behavior"),
        ("nemo-rl", "proximal/behavior"),
        ("martingale", "current/behavior"),
    ],
)
def test_a_framework_dump_keeps_its_numbers_as_a_native_log(
    layout: str, ratio: str, tmp_path: Path
) -> None:
    convert(DATA / "frameworks" / layout, tmp_path)
    (before, _), (after, log) = read(DATA / "frameworks" / layout), read(tmp_path)
    assert log.inputs[0].format == "native"
    assert count_and_m2(after, ratio) == (
        count_and_m2(before, ratio)[0],
        pytest.approx(count_and_m2(before, ratio)[1], rel=1e-5),
    )
    assert after.rows.step.tolist() == before.rows.step.tolist()


def test_a_text_dump_keeps_its_rewards_and_says_that_it_has_no_log_probs(tmp_path: Path) -> None:
    done = convert(DATA / "frameworks" / "verl" / "rollout_data", tmp_path)
    (before, _), (after, _) = read(DATA / "frameworks/verl/rollout_data"), read(tmp_path)
    assert after.rows.reward.tolist() == before.rows.reward.tolist()
    assert after.rows.response == before.rows.response
    assert after.rows.length_unit == "characters"
    assert any("log-probs" in text for text in done.not_carried)


def test_what_is_lost_is_said(tmp_path: Path) -> None:
    done = convert(DATA / "pathologies" / "33_only_truncated_weights.jsonl", tmp_path)
    text = " ".join(done.not_carried)
    assert "importance weights" in text
    assert "prompt token ids" in text
    assert "float32" in text
    assert convert(DATA / "real" / "trl_grpo_bf16.jsonl", tmp_path / "b").not_carried == [
        "prompt token ids",
        "prompt lengths",
    ]


def test_the_second_moment_survives(tmp_path: Path) -> None:
    convert(DATA / "real" / "verl_grpo_fp16.jsonl", tmp_path)
    n, m2 = count_and_m2(read(tmp_path)[0], "current/behavior")
    assert (n, m2) == (3541, pytest.approx(0.34323, abs=1e-5))


def test_an_occupied_directory_is_left_alone(tmp_path: Path) -> None:
    log = DATA / "real" / "trl_grpo_bf16.jsonl"
    convert(log, tmp_path)
    with pytest.raises(UnreadableLogError, match="empty directory"):
        convert(log, tmp_path)
