"""Packed rows are sequences again, and their padding is in no number."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from m2po_lab import analyze
from tests.logs.helpers import read

Write = Callable[..., Path]
LENGTHS = (4, 2, 3)


def pack(pad: int = 0, **more: Any) -> dict[str, Any]:
    """Three sequences end to end, `pad` zeros behind them."""
    n = sum(LENGTHS)
    behavior = [-0.1 * (i + 1) for i in range(n)]
    row = {
        "sequence_id": "p",
        "token_ids": list(range(n)) + [0] * pad,
        "rollout_log_probs": behavior + [0.0] * pad,
        "old_log_probs": [b - 0.05 for b in behavior] + [0.0] * pad,
        "advantages": [1.0, -1.0, 0.5],
    }
    return row | more


POSITIONS = [p for n in LENGTHS for p in range(n)]


@pytest.mark.parametrize(
    ("pad", "bounds"),
    [
        (0, {"position_ids": POSITIONS}),
        (2, {"position_ids": [*POSITIONS, 0, 1]}),
        (2, {"position_ids": [*POSITIONS, 0, 0]}),
        (3, {"position_ids": [*POSITIONS, 1, 1, 1]}),
        (0, {"cu_seqlens": [0, 4, 6, 9]}),
        (2, {"cu_seqlens": [0, 4, 6, 9]}),
        (2, {"cu_seqlens": [0, 4, 6, 9, 11]}),
        (2, {"seq_lens": [4, 2, 3]}),
    ],
    ids=str,
)
def test_a_pack_is_its_sequences(write: Write, pad: int, bounds: dict[str, Any]) -> None:
    batch, log = read(write(pack(pad, **bounds)))
    assert np.asarray(batch.lengths).tolist() == list(LENGTHS)
    assert batch.rows.row_id == ["p/0", "p/1", "p/2"]
    assert batch.behavior_logp.tolist() == pack()["rollout_log_probs"]
    assert batch.advantage.tolist() == [1.0] * 4 + [-1.0] * 2 + [0.5] * 3
    assert any("packed rows are split" in remark for remark in log.inputs[0].remarks)


def test_the_product_over_a_sequence_is_not_that_over_a_pack(write: Write) -> None:
    rows = [pack(2, position_ids=[*POSITIONS, 0, 1], sequence_id=str(i)) for i in range(4)]
    report = analyze(write(*rows)).to_dict()
    product = report["ratios"]["proximal/behavior"]["sequence"]["product"]
    assert product["n"] == 12
    assert product["log_ratio_min"] == pytest.approx(-0.05 * max(LENGTHS))
    assert report["tokens"]["kept"] == 4 * sum(LENGTHS)


@pytest.mark.parametrize(
    "positions",
    [list(range(9)), list(range(30, 39)), None, [0] * 8, [[0] * 9] * 3, list("abcdefghi")],
    ids=str,
)
def test_a_row_that_does_not_restart_is_one_row(write: Write, positions: Any) -> None:
    batch, log = read(write(pack(advantages=1.0, position_ids=positions)))
    assert np.asarray(batch.lengths).tolist() == [9]
    assert batch.rows.row_id == ["p"]
    assert log.inputs[0].remarks == []


@pytest.mark.parametrize("left", [[1, 1, 1], [0, 0, 0]])
def test_padding_beside_one_sequence_is_left_out_unless_a_mask_decides(
    write: Write, left: list[int]
) -> None:
    row = pack(advantages=1.0, position_ids=[*left, *range(6)])
    assert np.asarray(read(write(row))[0].lengths).tolist() == [6]
    masked = {**row, "loss_mask": [0] * 3 + [1] * 6}
    batch, _ = read(write(masked, name="masked.jsonl"))
    assert np.asarray(batch.lengths).tolist() == [9]
    assert int(np.asarray(batch.keep).sum()) == 6


def test_a_pack_whose_columns_do_not_fit_is_left_to_the_length_mismatch(write: Write) -> None:
    row = pack(position_ids=POSITIONS)
    row["old_log_probs"] = row["old_log_probs"][:-1]
    found = {finding.id for finding in analyze(write(row)).findings}
    assert "length-mismatch" in found


def test_packs_in_parquet_are_split_as_well(tmp_path: Path) -> None:
    rows = [pack(2, position_ids=[*POSITIONS, 0, 1])]
    pq.write_table(pa.Table.from_pylist(json.loads(json.dumps(rows))), tmp_path / "log.parquet")
    assert np.asarray(read(tmp_path / "log.parquet")[0].lengths).tolist() == list(LENGTHS)
