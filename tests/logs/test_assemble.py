"""Rows of lists -> aligned tokens: nothing is cut, padded or guessed."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs import values
from m2po_lab.logs.assemble import assemble
from m2po_lab.logs.merging import concatenate, take_rows
from m2po_lab.logs.rows import UNKNOWN
from tests.logs.helpers import DATA, read

Write = Callable[..., Path]
floats = st.floats(-50, 0)


def one(**row: Any) -> TokenBatch:
    """Assemble a single canonical row."""
    return assemble([row], "log", [1])


@given(st.lists(st.lists(floats, max_size=6), min_size=1, max_size=6))
@settings(max_examples=60)
def test_entries_come_back_in_order_whatever_the_lengths(rows: list[list[float]]) -> None:
    batch = assemble([{"behavior_logp": r} for r in rows], "log", range(len(rows)))
    assert batch.lengths.tolist() == [len(r) for r in rows]
    if any(rows):
        assert batch.behavior_logp.tolist() == [x for r in rows for x in r]


@given(st.lists(floats, min_size=1, max_size=8), st.integers(-3, 3).filter(bool))
@settings(max_examples=60)
def test_a_column_of_another_length_is_never_cut_or_padded(logp: list[float], off: int) -> None:
    n = max(len(logp) + off, 0)
    batch = one(token_ids=[7] * n, behavior_logp=logp)
    if n == 0:
        assert batch.shape == (0,)
        return
    assert np.isnan(batch.behavior_logp).all()
    assert batch.rows.unaligned.tolist() == [True]
    assert batch.rows.length_difference["behavior_logp"].tolist() == [len(logp) - n]
    assert batch.rows.misfits["behavior_logp"][0].tolist() == logp


def test_a_mask_of_another_length_makes_the_row_unaligned() -> None:
    assert one(token_ids=[1, 2], behavior_logp=[-1.0, -2.0], keep=[1]).rows.unaligned.all()


def test_the_real_row_with_13_tokens_and_12_log_probs_is_unaligned_by_one() -> None:
    batch, _ = read(DATA / "real" / "rlloggingboard_token_level.jsonl")
    assert batch.shape == (13,)
    assert batch.rows.length_difference["behavior_logp"].tolist() == [-1]
    assert batch.rows.unaligned.tolist() == [True]
    assert batch.rows.step.tolist() == [4]


def test_a_leading_dimension_of_one_is_taken_off() -> None:
    batch = one(behavior_logp=[[-1.0, -2.0]], keep=[[1, 0]], reward=[0.5])
    assert batch.behavior_logp.tolist() == [-1.0, -2.0]
    assert batch.keep.tolist() == [True, False]
    assert batch.rows.reward.tolist() == [0.5]


def test_engine_triples_give_their_log_prob_and_their_nulls() -> None:
    batch = one(behavior_logp=[[-0.5, 11, "a"], [None, 12, None], [-1, 13, None]])
    assert batch.behavior_logp[[0, 2]].tolist() == [-0.5, -1.0]
    assert batch.rows.nulls["behavior_logp"].tolist() == [False, True, False]


def test_a_single_engine_triple_is_no_leading_dimension() -> None:
    assert one(behavior_logp=[[-0.5, 11, None]]).behavior_logp.tolist() == [-0.5]


@pytest.mark.parametrize(
    ("mask", "kept"),
    [
        ([True, False, True], [True, False, True]),
        ([1, 0, 1], [True, False, True]),
        ([1.0, 0.0, 1.0], [True, False, True]),
        ([-100, 15, 0], [False, True, True]),
        ([17, 1, 42], [True, True, True]),
        ([1, None, 0], [True, False, False]),
    ],
)
def test_masks_are_booleans_ones_and_zeros_or_labels(mask: list[Any], kept: list[bool]) -> None:
    assert one(behavior_logp=[-1.0] * 3, keep=mask).keep.tolist() == kept


def test_without_a_mask_every_token_counts() -> None:
    batch = one(behavior_logp=[-1.0, -2.0])
    assert batch.keep.all()
    assert not batch.rows.has_mask


def test_a_scalar_advantage_is_that_of_every_token() -> None:
    assert one(behavior_logp=[-1.0, -2.0], advantage=0.5).advantage.tolist() == [0.5, 0.5]
    assert one(behavior_logp=[-1.0, -2.0], advantage=[0.5]).advantage.tolist() != [0.5, 0.5]


def test_versions_may_be_text_and_negative_ones_are_unknown() -> None:
    batch = one(behavior_logp=[-1.0] * 4, version=["3", -1, None, "base"], train_version="5")
    assert batch.version.tolist() == [3, -1, -1, -1]
    assert batch.rows.train_version.tolist() == [5]


def test_one_version_a_turn_is_given_to_the_tokens_of_its_turn() -> None:
    batch = one(behavior_logp=[-1.0] * 6, keep=[1, 1, 0, 0, 1, 1], version=["4", "6"])
    assert batch.version.tolist() == [4, 4, 4, 4, 6, 6]
    assert not batch.rows.unaligned.any()


def test_turn_versions_that_do_not_match_the_turns_are_unknown_not_a_guess() -> None:
    batch = one(behavior_logp=[-1.0] * 4, keep=[1, 1, 1, 1], version=["4", "6"])
    assert batch.version.tolist() == [-1] * 4
    assert batch.rows.length_difference["version"].tolist() == [-2]
    assert not batch.rows.unaligned.any()


def test_tokens_that_hold_the_prompt_are_cut_where_the_row_says_so() -> None:
    batch = one(token_ids=[1, 2, 3, 4], prompt_length=2, behavior_logp=[-1.0, -2.0])
    assert batch.rows.token_ids.tolist() == [3, 4]
    assert not batch.rows.unaligned.any()
    assert one(token_ids=[1, 2, 3, 4], behavior_logp=[-1.0, -2.0]).rows.unaligned.all()


def test_weights_stand_in_for_behavior_log_probs_that_are_missing() -> None:
    batch = one(proximal_logp=[-1.0, -2.0], weights=[2.0, 0.5])
    assert batch.log_ratio("proximal/behavior") == pytest.approx(np.log([2.0, 0.5]))
    assert batch.rows.weights.tolist() == [2.0, 0.5]


def test_a_column_that_one_row_lacks_is_absent_there_not_null() -> None:
    rows = [{"behavior_logp": [-1.0], "current_logp": [-1.0]}, {"behavior_logp": [-2.0]}]
    batch = assemble(rows, "log", [1, 2])
    assert batch.rows.absent["current_logp"].tolist() == [False, True]
    assert "current_logp" not in batch.rows.nulls


@pytest.mark.parametrize(
    ("other", "differs"),
    [([5, 6, 7], False), ([1, 2, 5, 6, 7, 0], False), ([5, 6, 8], True), ([56, 7], True)],
)
def test_a_second_id_column_shows_whether_training_encoded_anew(
    write: Write, other: list[int], differs: bool
) -> None:
    row = {"token_ids": [5, 6, 7], "train_token_ids": other, "logprobs": [-1.0, -1.0, -1.0]}
    batch, _ = read(write(row))
    assert batch.rows.retokenised.tolist() == [differs]


def test_prompts_and_other_ids_are_no_second_encoding(write: Write) -> None:
    row = {"token_ids": [5], "prompt_ids": [1], "position_ids": [0], "logprobs": [-1.0]}
    assert read(write(row))[0].rows.retokenised is None


def test_content_does_not_depend_on_identity_step_or_batch() -> None:
    row = {"token_ids": [5, 6], "behavior_logp": [-1.0, -2.0], "reward": 1.0}
    same = {**row, "row_id": "b", "step": 9, "version": 4}
    other = {**row, "behavior_logp": [-2.0, -1.0]}
    a = assemble([row, same, other], "log", [1, 2, 3]).rows.content
    b = assemble([other, row], "elsewhere", [7, 8]).rows.content
    assert a[0] == a[1] == b[1]
    assert a[2] == b[0] != a[0]


def test_steps_come_from_the_row_then_the_file_then_the_trainer_version(write: Write) -> None:
    row = {"logprobs": [-1.0], "train_version": 9}
    assert read(write({**row, "step": "3"}, name="7.jsonl"))[0].rows.step.tolist() == [3]
    assert read(write(row, name="7.jsonl"))[0].rows.step.tolist() == [7]
    assert read(write(row, name="global_step_12/rank_0.jsonl"))[0].rows.step.tolist() == [12]
    assert read(write(row, name="log.jsonl"))[0].rows.step.tolist() == [9]
    assert read(write({"logprobs": [-1.0]}, name="log.jsonl"))[0].rows.step is None


def test_scalars_of_every_make_are_read() -> None:
    assert values.integer("12") == values.integer([12.0]) == 12
    assert values.integer("latest") == values.integer(None) == UNKNOWN
    assert values.integer(float("inf")) == UNKNOWN
    assert values.real({"score": 0.5, "len": 7}) == values.real("0.5") == 0.5
    assert math.isnan(values.real({"a": 1, "b": 2}))
    assert values.text([{"role": "user", "content": "hi"}]) == "hi"
    assert values.numbers([10**400, -(10**400)]).values.tolist() == [math.inf, -math.inf]


@given(st.lists(st.integers(0, 4), min_size=2, max_size=6), st.data())
@settings(max_examples=40)
def test_cutting_a_batch_and_joining_the_pieces_changes_nothing(
    lengths: list[int], data: st.DataObject
) -> None:
    rows = [
        {"behavior_logp": [None, -1.0, -2.0, -3.0][:n], "row_id": str(i), "reward": i}
        for i, n in enumerate(lengths)
    ]
    whole = assemble(rows, "log", range(len(rows)))
    cut = data.draw(st.integers(1, len(rows) - 1))
    again = concatenate([take_rows(whole, 0, cut), take_rows(whole, cut, len(rows))])
    assert again.lengths.tolist() == whole.lengths.tolist()
    assert again.rows.content.tolist() == whole.rows.content.tolist()
    assert again.rows.row_id == whole.rows.row_id
    if whole.behavior_logp is not None:
        assert np.array_equal(again.behavior_logp, whole.behavior_logp, equal_nan=True)
    assert {k: v.tolist() for k, v in again.rows.nulls.items()} == {
        k: v.tolist() for k, v in whole.rows.nulls.items()
    }
