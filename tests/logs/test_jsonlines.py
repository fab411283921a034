"""Generic JSON lines: every trainer's names, every broken line."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.open import open_log
from tests.logs.helpers import DATA, count_and_m2, read

Write = Callable[..., Path]
ROW = {
    "token_ids": [5, 6, 7],
    "rollout_log_probs": [-1.0, -2.0, -3.0],
    "old_log_probs": [-1.5, -2.0, -3.0],
}


def zstd(data: bytes) -> bytes:
    return pa.compress(data, "zstd", asbytes=True)


@pytest.mark.parametrize(
    ("name", "n", "m2"), [("trl_grpo_bf16", 502, 1.0265), ("verl_grpo_fp16", 3541, 0.3432)]
)
def test_the_real_runs_give_their_published_counts_and_second_moments(
    name: str, n: int, m2: float
) -> None:
    batch, log = read(DATA / "real" / f"{name}.jsonl")
    assert batch.available_ratios() == ("current/behavior",)
    counted, measured = count_and_m2(batch, "current/behavior")
    assert counted == n
    assert measured == pytest.approx(m2, abs=5e-5)
    assert log.inputs[0].columns["current"] == "trainer_log_probs"


def test_logged_float64_values_arrive_unrounded(write: Write) -> None:
    batch, _ = read(write({**ROW, "rollout_log_probs": [-0.1234567890123456, -1.0, -2.0]}))
    assert batch.behavior_logp[0] == -0.1234567890123456


def test_a_nan_a_null_and_an_infinity_stay_three_different_things(write: Write) -> None:
    line = json.dumps(ROW).replace("-1.0,", "NaN,").replace("-2.0,", "-Infinity,", 1)
    batch, _ = read(write(line + "\n", {**ROW, "rollout_log_probs": [None, -2.0, -3.0]}))
    values = batch.behavior_logp
    assert np.isnan(values[0])
    assert values[1] == -np.inf
    assert np.isnan(values[3])
    assert batch.rows.nulls["behavior_logp"].tolist() == [False, False, False, True, False, False]


def test_a_last_line_cut_short_is_counted_and_the_rest_is_read(write: Write) -> None:
    batch, log = read(write(ROW, ROW, json.dumps(ROW)[:40]))
    assert (batch.n_rows, log.bad_rows, log.partial) == (2, 1, False)


def test_a_malformed_line_in_the_middle_stops_the_reading_with_one_line(write: Write) -> None:
    path = write(ROW, "{broken\n", ROW)
    message = r"log\.jsonl:2: .*broken.*--skip-bad-rows"
    with pytest.raises(UnreadableLogError, match=message) as caught:
        list(open_log(path))
    assert "\n" not in str(caught.value)


def test_malformed_lines_can_be_skipped_and_are_counted(write: Write) -> None:
    batch, log = read(write(ROW, "{broken\n", "[1, 2]\n", ROW), skip_bad_rows=True)
    assert (batch.n_rows, log.bad_rows) == (2, 2)
    assert batch.rows.line.tolist() == [1, 4]


def test_blank_lines_and_a_byte_order_mark_are_no_rows(write: Write) -> None:
    batch, log = read(write("\ufeff" + json.dumps(ROW) + "\n", "\n", "  \n", ROW, "\n"))
    assert (batch.n_rows, log.bad_rows) == (2, 0)
    assert batch.rows.line.tolist() == [1, 4]


def test_without_a_readable_row_the_log_is_unreadable(write: Write) -> None:
    with pytest.raises(UnreadableLogError, match="no readable row"):
        list(open_log(write("")))
    with pytest.raises(UnreadableLogError, match="no readable row"):
        list(open_log(write('{"rollout_log_probs": [-1'), format="jsonl"))


def test_a_json_array_of_rows_is_read_like_lines(write: Write) -> None:
    lines, _ = read(write(ROW, ROW))
    array, _ = read(write(json.dumps([ROW, ROW], indent=1), name="log.json"))
    assert np.array_equal(lines.behavior_logp, array.behavior_logp)
    assert np.array_equal(lines.rows.content, array.rows.content)


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
def test_compression_is_told_from_the_bytes_not_from_the_name(
    write: Write, compress: Callable[[bytes], bytes]
) -> None:
    plain = write(ROW, ROW)
    packed = plain.with_name("log.dat")
    packed.write_bytes(compress(plain.read_bytes()))
    assert np.array_equal(read(plain)[0].behavior_logp, read(packed)[0].behavior_logp)


def test_a_compressed_log_cut_short_gives_the_rows_before_the_cut(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [{**ROW, "rollout_log_probs": (-rng.random(3)).tolist()} for _ in range(3000)]
    packed = gzip.compress("".join(json.dumps(r) + "\n" for r in rows).encode())
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(packed[: len(packed) // 2])
    batch, log = read(path)
    assert 500 < batch.n_rows < 3000
    assert log.bad_rows == 1
    assert batch.behavior_logp[:3].tolist() == rows[0]["rollout_log_probs"]


def test_named_columns_beat_every_synonym(write: Write) -> None:
    path = write({**ROW, "mine": [-9.0, -9.0, -9.0]})
    batch, log = read(path, columns={"old": "mine", "behavior": "old_log_probs"})
    assert batch.proximal_logp.tolist() == [-9.0] * 3
    assert batch.behavior_logp.tolist() == [-1.5, -2.0, -3.0]
    assert log.inputs[0].columns["proximal"] == "mine"


def test_a_column_taken_by_the_user_is_taken_for_nothing_else(write: Write) -> None:
    row = {"rollout_log_probs": [-1.0], "trainer_log_probs": [-1.5]}
    batch, _ = read(write(row), columns={"old": "trainer_log_probs"})
    assert batch.available_ratios() == ("proximal/behavior",)


def test_named_columns_make_an_unknown_layout_readable(write: Write) -> None:
    path = write({"a": [-1.0, -2.0], "b": [-1.5, -2.0]})
    with pytest.raises(UnreadableLogError, match=r"unknown format.*a, b.*--columns"):
        open_log(path)
    assert read(path, columns={"behavior": "a", "current": "b"})[0].available_ratios()


def test_an_absent_named_column_is_an_error_that_lists_the_present_ones(write: Write) -> None:
    with pytest.raises(UnreadableLogError, match=r"no column 'nope'.*rollout_log_probs"):
        list(open_log(write(ROW), columns={"old": "nope"}))


def test_an_unknown_role_is_an_error_that_lists_the_roles(write: Write) -> None:
    with pytest.raises(UnreadableLogError, match=r"'oldish'.*proximal"):
        open_log(write(ROW), columns={"oldish": "old_log_probs"})


def test_the_first_synonym_with_a_value_wins(write: Write) -> None:
    batch, _ = read(write({"rollout_log_probs": None, "logprobs": [-1.0], "response_mask": [1]}))
    assert batch.behavior_logp.tolist() == [-1.0]


def test_batches_are_bounded_and_a_longer_row_stands_alone(write: Write) -> None:
    rows = [{"rollout_log_probs": [-1.0] * n} for n in (40, 40, 40, 500, 10, 10)]
    sizes = [b.shape[0] for b in open_log(write(*rows), batch_tokens=100)]
    assert sizes == [80, 40, 500, 20]


def test_one_line_of_columns_is_read_as_its_rows(tmp_path: Path) -> None:
    columns = {
        "step": [3, 4],
        "rollout_log_probs": [[-1.0, -2.0, -3.0], [-0.5]],
        "old_log_probs": [[-1.5, -2.0, -3.0], [-0.5]],
        "reward": [1.0, 0.0],
    }
    path = tmp_path / "columns.jsonl"
    path.write_text(json.dumps(columns) + "\n")
    batch, _ = read(path)
    assert batch.lengths.tolist() == [3, 1]
    assert batch.rows.step.tolist() == [3, 4]
    assert np.asarray(batch.behavior_logp).tolist() == [-1.0, -2.0, -3.0, -0.5]
