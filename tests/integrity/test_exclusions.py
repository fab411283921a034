"""Which values are excluded, which are not, and under what name."""

import numpy as np
import pytest

from m2po_lab.integrity import check
from tests.integrity.logs import batch


def counts(behavior: list[float], other: list[float], **columns: list[float]) -> dict[str, int]:
    """Non-zero exclusions of one row of behavior and proximal log-probs."""
    row = {"behavior": behavior, "proximal": other, "id": "r", **columns}
    excluded = check(batch([row]))[1].tokens.to_dict()["excluded"]
    assert isinstance(excluded, dict)
    return {kind: n for kind, n in excluded.items() if n}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_number_is_no_log_prob(value: float) -> None:
    assert counts([-1.0, value], [-1.0, -1.0]) == {"non_finite": 1}
    assert counts([-1.0, -1.0], [-1.0, value]) == {"non_finite": 1}


@pytest.mark.parametrize("value", [-9999.0, -1e4, -1e9, -100.0, -999.0, float(np.finfo("f4").min)])
def test_fill_values_are_sentinels(value: float) -> None:
    assert counts([-1.0, value], [-1.0, -1.0]) == {"sentinel": 1}


@pytest.mark.parametrize("value", [-30.0, -99.9, -150.0])
def test_unlikely_tokens_are_no_sentinels(value: float) -> None:
    assert counts([-1.0, value], [-1.0, -1.0]) == {}


def test_rounding_above_zero_is_accepted_and_more_is_not() -> None:
    assert counts([1e-3, -1.0], [1e-4, -1.0]) == {}
    assert counts([2e-3, -1.0], [-1.0, -1.0]) == {"positive": 1}
    assert counts([1.0, -1.0], [1.0, -1.0]) == {"positive": 1}
    assert counts([-0.1], [-0.1], current=[0.05]) == {}
    assert counts([-0.1], [-0.1], current=[0.07]) == {"positive": 1}


def test_a_run_of_zeros_is_filled_in_if_another_column_contradicts_it() -> None:
    assert counts([-1.0, 0.0, 0.0, -1.0], [-1.0, -2.0, -3.0, -1.0]) == {"zero_filled": 2}


def test_a_filled_run_is_excluded_whole() -> None:
    other = [-1.0, -2.0, -0.01, -3.0, -1.0]
    assert counts([-1.0, 0.0, 0.0, 0.0, -1.0], other) == {"zero_filled": 3}


def test_a_long_run_is_filled_in_though_a_sharp_policy_foresees_most_of_it() -> None:
    foreseen = [-0.001, -1.0, -0.002, -0.003] * 4
    assert counts([-1.0, *[0.0] * 16], [-1.0, *foreseen]) == {"zero_filled": 16}
    rarely = [-1.0, -1.0, -1.0, *[-0.001] * 17]
    assert counts([-1.0, *[0.0] * 20], [-1.0, *rarely]) == {}


def test_a_single_zero_is_left_alone() -> None:
    assert counts([-1.0, 0.0, -1.0, 0.0], [-1.0, -0.3, -1.0, -2.0]) == {}


def test_honest_certainties_are_left_alone_however_many() -> None:
    assert counts([0.0] * 6, [-1e-6, 0.0, -0.02, 0.0, -0.2, -1e-3]) == {}


def test_a_masked_token_between_does_not_break_a_run() -> None:
    row = {
        "behavior": [0.0, -1.0, 0.0],
        "proximal": [-1.0, -1.0, -1.0],
        "keep": [True, False, True],
        "id": "r",
    }
    evidence = check(batch([row]))[1]
    assert (evidence.tokens.zero_filled, evidence.tokens.masked) == (2, 1)


def test_a_run_does_not_reach_into_the_next_row() -> None:
    rows = [
        {"behavior": [-1.0, 0.0], "proximal": [-1.0, -2.0], "id": "a"},
        {"behavior": [0.0, -1.0], "proximal": [-2.0, -1.0], "id": "b"},
    ]
    assert check(batch(rows))[1].tokens.zero_filled == 0


def test_the_current_policy_may_have_left_two_certain_tokens_but_not_three() -> None:
    def found(zeros: int) -> int:
        row = {"behavior": [-1.0] + [0.0] * zeros, "current": [-1.0] + [-2.0] * zeros, "id": "r"}
        return check(batch([row]))[1].tokens.zero_filled

    assert [found(n) for n in (1, 2, 3)] == [0, 0, 3]


def test_a_token_with_several_faults_counts_under_the_first() -> None:
    row = {
        "behavior": [np.nan, -9999.0, -9999.0, 1.0],
        "proximal": [-9999.0, 1.0, -1.0, -1.0],
        "keep": [True, True, False, True],
        "id": "r",
    }
    tokens = check(batch([row]))[1].tokens
    assert (tokens.masked, tokens.non_finite, tokens.sentinel, tokens.positive) == (1, 1, 1, 1)
    assert tokens.kept == 0


def test_a_row_that_does_not_fit_is_excluded_whole() -> None:
    rows = [
        {"behavior": [np.nan, np.nan], "proximal": [-1.0, -1.0], "id": "a"},
        {"behavior": [-1.0, -2.0], "proximal": [-1.0, -1.0], "id": "b"},
    ]
    difference = {"behavior_logp": np.array([1, 0])}
    faulty = batch(rows, unaligned=np.array([True, False]), length_difference=difference)
    evidence = check(faulty)[1]
    assert evidence.tokens.unaligned == 2
    assert evidence.tokens.non_finite == 0
    assert evidence.rows.unaligned == 1
    assert evidence.lengths == {("behavior_logp", "longer"): 1}


def test_a_missing_advantage_is_unknown_and_a_hole_in_a_row_is_a_fault() -> None:
    row = {"behavior": [-1.0] * 3, "proximal": [-1.0] * 3, "id": "r"}
    assert check(batch([{**row, "advantage": [np.nan] * 3}]))[1].tokens.kept == 3
    holed = check(batch([{**row, "advantage": [1.0, np.nan, np.inf]}]))[1]
    assert holed.tokens.non_finite == 2
    assert set(holed.faults) == {
        ("non_finite", "advantage", "nan"),
        ("non_finite", "advantage", "+inf"),
    }


def test_nulls_and_absent_columns_are_told_from_nan() -> None:
    rows = [
        {"behavior": [np.nan, np.nan], "proximal": [-1.0, -1.0], "id": "a"},
        {"behavior": [np.nan, -1.0], "proximal": [-1.0, -1.0], "id": "b"},
    ]
    faulty = batch(
        rows,
        nulls={"behavior_logp": np.array([False, False, True, False])},
        absent={"behavior_logp": np.array([True, False])},
    )
    faults = check(faulty)[1].faults
    assert {key[2]: fault.tokens for key, fault in faults.items()} == {"absent": 2, "null": 1}


def test_log_probs_derived_from_weights_may_be_positive() -> None:
    proximal = np.array([-0.1, -1.0])
    weights = np.array([0.5, 1.2])
    row = {"behavior": list(proximal - np.log(weights)), "proximal": list(proximal), "id": "r"}
    evidence = check(batch([row], weights=weights))[1]
    assert evidence.tokens.kept == 2
    assert evidence.weights is not None
    assert evidence.weights.n == 2


def test_positions_are_counted_in_doubling_bins() -> None:
    values = [np.nan if i in (0, 1, 3, 6, 7) else -1.0 for i in range(9)]
    (fault,) = check(batch([{"behavior": values, "proximal": [-1.0] * 9, "id": "r"}]))[
        1
    ].faults.values()
    assert fault.positions[:4].tolist() == [1, 1, 1, 2]


def test_a_row_without_a_counted_token_is_empty_for_whichever_reason() -> None:
    good = {"behavior": [-1.0, -2.0], "proximal": [-1.0, -2.0], "keep": [True, True], "id": "good"}
    masked = {**good, "keep": [False, False], "id": "masked"}
    faulty = {**good, "behavior": [np.nan, -9999.0], "id": "faulty"}
    rows = check(batch([good, masked, faulty]))[1].rows
    assert (rows.kept, rows.empty, rows.emptied) == (1, 1, 1)
    assert rows.to_dict() == {
        "read": 3,
        "kept": 1,
        "excluded": {"empty": 2, "duplicate": 0, "bad": 0, "unaligned": 0},
    }


def test_only_rows_that_could_not_be_read_are_bad() -> None:
    good = {"behavior": [-1.0, -2.0], "proximal": [-1.0, -2.0], "id": "good"}
    found = check(batch([good]))[1].rows.to_dict(unreadable=2)
    assert (found["read"], found["kept"]) == (3, 1)
    assert found["excluded"] == {"empty": 0, "duplicate": 0, "bad": 2, "unaligned": 0}
