"""The native log: what is written comes back, and a reader never meets half a file."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.open import open_log
from m2po_lab.logs.rows import UNKNOWN
from m2po_lab.logs.schema import ORDER, ROW_COLUMNS, SCHEMA_KEY, TOKEN_COLUMNS
from m2po_lab.logs.writer import LogWriter
from tests.logs.helpers import read


def columns(lengths: list[int], seed: int = 0) -> dict[str, Any]:
    """Every native column for rows of these lengths."""
    rng = np.random.default_rng(seed)
    n, b = sum(lengths), len(lengths)
    logp = {k: -rng.random(n).astype(np.float32) for k in TOKEN_COLUMNS if k.endswith("logp")}
    return logp | {
        "step": 3,
        "mini_batch": np.arange(b) % 2,
        "train_version": 4,
        "row_id": [f"r{i}" for i in range(b)],
        "group_id": [f"g{i // 2}" for i in range(b)],
        "token_ids": rng.integers(0, 1000, n),
        "loss_mask": rng.random(n) < 0.8,
        "entropy": rng.random(n).astype(np.float32),
        "version": rng.integers(0, 5, n),
        "advantage": rng.normal(size=n).astype(np.float32),
        "reward": rng.random(b).astype(np.float32),
        "finish_reason": ["stop"] * b,
        "prompt": ["p"] * b,
        "response": ["é<b>"] * b,
    }


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8).filter(any))
@settings(max_examples=25, deadline=None)
def test_what_is_written_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int]
) -> None:
    given_columns = columns(lengths)
    LogWriter(directory := tmp_path_factory.mktemp("log")).write("a", lengths, **given_columns)
    batch, log = read(directory)
    assert batch.lengths.tolist() == lengths
    for name in TOKEN_COLUMNS:
        field = {"loss_mask": "keep"}.get(name, name)
        back = batch.rows.token_ids if name == "token_ids" else getattr(batch, field)
        assert np.array_equal(back, given_columns[name]), name
    assert batch.behavior_logp.dtype == np.float32
    assert batch.rows.row_id == given_columns["row_id"]
    assert batch.rows.response == given_columns["response"]
    assert np.array_equal(batch.rows.reward, given_columns["reward"])
    assert set(batch.rows.step.tolist()) == {3}
    assert log.inputs[0].format == "native"


def test_the_file_has_the_types_of_the_contract(tmp_path: Path) -> None:
    path = LogWriter(tmp_path).write("a", [2, 1], **columns([2, 1]))
    schema = pq.read_schema(path)
    assert schema.metadata[SCHEMA_KEY] == b"log/1"
    assert schema.names == list(ORDER)
    for name, dtype in ROW_COLUMNS.items():
        assert schema.field(name).type == dtype
    for name, dtype in TOKEN_COLUMNS.items():
        assert schema.field(name).type.value_type == dtype


def test_an_advantage_a_response_is_stored_once_and_read_for_every_token(tmp_path: Path) -> None:
    logp = np.full(3, -1.0)
    path = LogWriter(tmp_path).write("a", [2, 1], behavior_logp=logp, advantage=[0.5, -1.0])
    assert pq.read_schema(path).field("advantage").type == pa.float32()
    assert read(path)[0].advantage.tolist() == [0.5, 0.5, -1.0]


def test_unknowns_are_null_in_the_file_and_unknown_again_when_read(tmp_path: Path) -> None:
    path = LogWriter(tmp_path).write(
        "a",
        [1, 1],
        behavior_logp=[-1.0, -1.0],
        step=np.array([UNKNOWN, 5]),
        reward=[np.nan, 1.0],
        row_id=[None, "x"],
    )
    table = pq.read_table(path)
    assert [table[c][0].as_py() for c in ("step", "reward", "row_id")] == [None] * 3
    rows = read(path)[0].rows
    assert rows.step.tolist() == [UNKNOWN, 5]
    assert np.isnan(rows.reward[0])
    assert rows.row_id == [None, "x"]


def test_the_same_columns_give_the_same_bytes(tmp_path: Path) -> None:
    a = LogWriter(tmp_path / "a").write("x", [3, 2], **columns([3, 2]))
    b = LogWriter(tmp_path / "b").write("x", [3, 2], **columns([3, 2]))
    assert a.read_bytes() == b.read_bytes()


def test_a_writer_killed_before_the_rename_leaves_the_files_that_were_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = LogWriter(tmp_path)
    writer.write("step_1", [2], behavior_logp=[-1.0, -2.0])

    def power_cut(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", power_cut)
    with pytest.raises(KeyboardInterrupt):
        writer.write("step_2", [2], behavior_logp=[-1.0, -2.0])
    assert [p.name for p in tmp_path.iterdir()] == ["step_1.parquet"]


def test_a_half_written_temporary_file_is_not_read(tmp_path: Path) -> None:
    path = LogWriter(tmp_path).write("step_1", [2], behavior_logp=[-1.0, -2.0])
    (tmp_path / ".step_2.parquet.tmp-77").write_bytes(path.read_bytes()[:50])
    batch, log = read(tmp_path)
    assert (batch.n_rows, log.inputs[0].files) == (1, 1)


def test_a_newer_schema_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = LogWriter(tmp_path).write("a", [1], behavior_logp=[-1.0])
    table = pq.read_table(path).replace_schema_metadata({SCHEMA_KEY: b"log/2"})
    pq.write_table(table, path)
    with pytest.raises(UnreadableLogError, match=r"'log/2'.*log/1.*upgrade"):
        list(open_log(path))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"behaviour_logp": [-1.0]}, "behaviour_logp"),
        ({"behavior_logp": [-1.0, -2.0]}, r"behavior_logp has shape \(2,\)"),
        ({"behavior_logp": [-1.0], "reward": [1.0, 2.0]}, "reward has 2 entries for 1 rows"),
        ({}, "no column"),
    ],
)
def test_columns_that_do_not_fit_are_refused_by_name(
    tmp_path: Path, bad: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        LogWriter(tmp_path).write("a", [1], **bad)


def test_batches_of_a_large_file_are_bounded(tmp_path: Path) -> None:
    lengths = [1] * 500 + [3000] + [1] * 500
    LogWriter(tmp_path).write("a", lengths, behavior_logp=np.full(sum(lengths), -1.0))
    batches = list(open_log(tmp_path, batch_tokens=300))
    assert sum(b.n_rows for b in batches) == len(lengths)
    assert all(b.shape[0] <= 600 or b.n_rows == 1 for b in batches)
