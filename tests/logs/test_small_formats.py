"""The decoders without a library: msgpack, safetensors; Trinity's blobs; tables; the ledger."""

import gzip
import json
import pickle
import shutil
import sqlite3
import struct
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.logs import msgpack, safetensors
from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.open import open_log
from tests.logs.helpers import DATA, read

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=30,
)


def as_lists(value: Any) -> Any:
    """Arrays as lists, throughout."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [as_lists(item) for item in value]
    return {k: as_lists(v) for k, v in value.items()} if isinstance(value, dict) else value


@given(plain)
@settings(max_examples=150)
def test_msgpack_decodes_what_another_library_encodes(value: Any) -> None:
    assert as_lists(msgpack.unpack(msgspec.msgpack.encode(value))) == value


@given(plain, st.data())
@settings(max_examples=60)
def test_msgpack_cut_short_is_a_value_error(value: Any, data: st.DataObject) -> None:
    packed = msgspec.msgpack.encode([value, "end"])
    cut = data.draw(st.integers(0, len(packed) - 1))
    with pytest.raises(ValueError, match=r"ends early|msgpack"):
        msgpack.unpack(packed[:cut])


@pytest.mark.parametrize("n", [1, 15, 16, 70_000])
def test_msgpack_long_lists_keep_values_and_order(n: int) -> None:
    floats = (-np.random.default_rng(0).random(n)).tolist()
    flags = [i % 3 == 0 for i in range(n)]
    ints = list(range(n))
    back = msgpack.unpack(msgspec.msgpack.encode([floats, flags, ints]))
    assert as_lists(back) == [floats, flags, ints]


def test_msgpack_that_claims_more_than_it_holds_takes_no_memory() -> None:
    with pytest.raises(ValueError, match="ends early"):
        msgpack.unpack(b"\xdd\xff\xff\xff\xff")
    with pytest.raises(ValueError, match="deep"):
        msgpack.unpack(b"\x91" * 100 + b"\x00")


def tensors_of(**arrays: np.ndarray) -> bytes:
    """safetensors bytes, written by hand."""
    names = {"float32": "F32", "int32": "I32", "bool": "BOOL", "uint16": "BF16"}
    header, body = {}, b""
    for name, array in arrays.items():
        start, body = len(body), body + array.tobytes()
        header[name.replace("__", ":")] = {
            "dtype": names[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [start, len(body)],
        }
    text = json.dumps({"__metadata__": {"format": "pt"}} | header).encode()
    return struct.pack("<Q", len(text)) + text + body


def test_safetensors_give_arrays_and_widen_bfloat16_exactly() -> None:
    halves = np.array([0xBF80, 0x3F00], dtype=np.uint16)
    got = safetensors.unpack(tensors_of(a=np.arange(6, dtype=np.int32).reshape(2, 3), b=halves))
    assert got["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert got["b"].tolist() == [-1.0, 0.5]


def test_safetensors_that_point_outside_their_data_are_refused() -> None:
    good = tensors_of(a=np.arange(3, dtype=np.int32))
    with pytest.raises(ValueError, match="outside"):
        safetensors.unpack(good[:-4])


def experience(version: int = 3) -> bytes:
    """A TRXP blob of two experiences."""
    meta = {
        "version": 1,
        "num_items": 2,
        "items": [
            {
                "eid": {"batch": 5, "task": 1, "run": run, "step": 0, "suffix": "x"},
                "reward": float(run),
                "info": {"model_version": version},
                "prompt_length": 2,
                "truncate_status": None,
            }
            for run in range(2)
        ],
    }
    arrays = {}
    for i in range(2):
        arrays[f"{i}__tokens"] = np.array([1, 2, 7, 8, 9], dtype=np.int32)
        arrays[f"{i}__logprobs"] = np.array([-1.0, -2.0, -3.0 - i], dtype=np.float32)
        arrays[f"{i}__action_mask"] = np.array([True, True, False])
    packed, body = pickle.dumps(meta), tensors_of(**arrays)
    return b"TRXP" + struct.pack("<BQQ", 1, len(packed), len(body)) + packed + body


def check_experiences(path: Path) -> None:
    batch, log = read(path)
    assert log.inputs[0].format == "trinity"
    assert batch.behavior_logp.tolist() == [-1.0, -2.0, -3.0, -1.0, -2.0, -4.0]
    assert batch.keep.tolist() == [True, True, False] * 2
    assert batch.rows.token_ids.tolist() == [7, 8, 9] * 2
    assert set(batch.version.tolist()) == {3}
    assert batch.rows.group_id == ["5/1"] * 2
    assert batch.rows.step.tolist() == [5, 5]
    assert batch.rows.reward.tolist() == [0.0, 1.0]
    assert "old_logprobs" in log.missing_flag


def test_trinity_blobs_are_read_from_files(tmp_path: Path) -> None:
    path = tmp_path / "buffer.bin"
    path.write_bytes(experience())
    check_experiences(path)
    path.write_bytes(experience() + experience()[:200])
    assert open_and_count(path) == (2, 1)


def open_and_count(path: Path) -> tuple[int, int]:
    """Rows and bad rows of a log."""
    batch, log = read(path)
    return batch.n_rows, log.bad_rows


def test_trinity_blobs_are_read_from_the_sql_buffer(tmp_path: Path) -> None:
    path = tmp_path / "buffer.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE exp (id INTEGER PRIMARY KEY, experience_bytes BLOB)")
        database.execute("INSERT INTO exp (experience_bytes) VALUES (?)", (experience(),))
    database.close()
    check_experiences(path)


def test_a_newer_blob_is_a_bad_row_not_a_guess(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(experience() + b"TRXP\x09" + experience()[5:])
    assert open_and_count(path) == (2, 1)


def test_the_ledger_is_opened_without_touching_it(tmp_path: Path) -> None:
    path = tmp_path / "tokens.db"
    shutil.copy(DATA / "frameworks/martingale/tokens.db", path)
    before = path.read_bytes()
    path.chmod(0o444)
    read(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["tokens.db"]


def test_a_compressed_ledger_is_read_by_way_of_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "tokens.db.gz"
    path.write_bytes(gzip.compress((DATA / "frameworks/martingale/tokens.db").read_bytes()))
    assert read(path)[0].shape == (502,)


def test_a_broken_ledger_is_one_line(tmp_path: Path) -> None:
    data = (DATA / "frameworks/martingale/tokens.db").read_bytes()
    path = tmp_path / "tokens.db"
    path.write_bytes(data[:1024] + b"\xff" * 4096)
    with pytest.raises(UnreadableLogError):
        list(open_log(path))


def test_any_parquet_table_under_common_names_is_read(tmp_path: Path) -> None:
    table = pa.table(
        {
            "rollout_log_probs": [[-1.0, None], [-2.0]],
            "old_log_probs": pa.array([[-1.5, -1.0], [-2.0]], pa.large_list(pa.float32())),
            "response_mask": [[1, 0], [1]],
            "score": [0.5, None],
        }
    )
    pq.write_table(table, tmp_path / "7.parquet")
    batch, log = read(tmp_path / "7.parquet")
    assert log.inputs[0].format == "parquet"
    assert batch.proximal_logp.tolist() == [-1.5, -1.0, -2.0]
    assert batch.rows.nulls["behavior_logp"].tolist() == [False, True, False]
    assert batch.keep.tolist() == [True, False, True]
    assert np.isnan(batch.rows.reward[1])
    assert batch.rows.step.tolist() == [7, 7]


def test_a_parquet_file_without_its_end_is_a_bad_row_beside_whole_ones(tmp_path: Path) -> None:
    shutil.copytree(DATA / "frameworks/trl/completions", tmp_path / "c")
    whole = (tmp_path / "c" / "completions_00003.parquet").read_bytes()
    (tmp_path / "c" / "completions_00004.parquet").write_bytes(whole[:-30])
    assert open_and_count(tmp_path / "c") == (32, 1)
