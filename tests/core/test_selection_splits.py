"""The mini-batch may lie in any number of micro-batches, on any number of ranks, in any order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.core.kernels import use_kernels
from m2po_lab.core.selection import apply, solve_threshold
from tests.conftest import load, to_numpy
from tests.core.selecting import AllReduce, batch_of, naive, over_ranks, problems


def shares(n_rows, parts, seed):
    """Deal the rows out: for each part the canonical numbers of its rows, in any order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_rows)
    return np.split(order, np.sort(rng.integers(0, n_rows + 1, parts - 1)))


def gather(shape, pieces):
    """Put the masks of parts back in canonical order."""
    whole = np.zeros(shape, dtype=bool)
    for rows, mask in pieces:
        whole[rows] = to_numpy(mask)
    return whole


@settings(deadline=None, max_examples=150)
@given(problems(), st.integers(1, 4), st.integers(0, 999))
def test_splitting_a_batch_never_changes_the_mask(problem, parts, seed):
    d, a, keep, budget = problem
    dealt = shares(d.shape[0], parts, seed)
    batches = [batch_of(d[rows], a[rows], keep[rows]) for rows in dealt]
    threshold = solve_threshold(batches, budget, rows=dealt)
    masks = [(rows, apply(b, threshold)) for rows, b in zip(dealt, batches, strict=True)]
    np.testing.assert_array_equal(gather(d.shape, masks), naive(d, a, keep, budget))
    whole = solve_threshold(batch_of(d, a, keep), budget)
    assert repr(threshold) == repr(whole)


@settings(deadline=None, max_examples=60)
@given(problems(), st.integers(1, 3), st.integers(1, 2), st.integers(0, 999))
def test_the_number_of_ranks_never_changes_the_mask(problem, ranks, micro, seed):
    d, a, keep, budget = problem
    dealt = shares(d.shape[0], ranks * micro, seed)

    def rank(index, reduce):
        mine = dealt[index * micro : (index + 1) * micro]
        batches = [batch_of(d[rows], a[rows], keep[rows]) for rows in mine]
        threshold = solve_threshold(iter(batches), budget, reduce=reduce, rows=mine)
        return threshold, [(r, apply(b, threshold, r)) for r, b in zip(mine, batches, strict=True)]

    results, shared = over_ranks(ranks, rank)
    masks = [piece for _, pieces in results for piece in pieces]
    np.testing.assert_array_equal(gather(d.shape, masks), naive(d, a, keep, budget))
    assert {repr(threshold) for threshold, _ in results} == {
        repr(solve_threshold(batch_of(d, a, keep), budget))
    }
    assert max(shared.sizes) < 1_000_000


def test_micro_batches_without_row_numbers_are_counted_in_the_order_given():
    d = np.array([[0.0625, 0.5, 0.5], [0.5, 0.5, 0.0625]])
    a, keep = np.ones_like(d), np.ones_like(d, dtype=bool)
    batches = [batch_of(d[i : i + 1], a[i : i + 1], keep[i : i + 1]) for i in (0, 1)]
    threshold = solve_threshold(batches, 0.1)
    masks = np.concatenate([apply(b, threshold) for b in batches])
    np.testing.assert_array_equal(masks, naive(d, a, keep, 0.1))
    copy = batch_of(d[1:], a[1:], keep[1:])
    with pytest.raises(ValueError, match=r"1 of 4 tied tokens stay.* pass rows="):
        apply(copy, threshold)
    np.testing.assert_array_equal(apply(copy, threshold, [1]), masks[1:])


def test_a_rank_without_a_batch_takes_part():
    d = np.array([[0.1, 1.0], [0.1, 0.1]])
    a, keep = np.ones_like(d), np.ones_like(d, dtype=bool)

    def rank(index, reduce):
        mine = [batch_of(d, a, keep)] if index == 0 else []
        return solve_threshold(mine, 0.04, reduce=reduce, rows=[np.arange(2)] * len(mine))

    (first, second), _ = over_ranks(2, rank)
    assert first == second == solve_threshold(batch_of(d, a, keep), 0.04)


def test_a_non_finite_token_on_one_rank_raises_on_every_rank():
    good, bad = np.array([[0.1, 0.2]]), np.array([[0.1, np.nan]])
    keep = np.ones((1, 2), dtype=bool)

    def rank(index, reduce):
        tokens = batch_of(bad if index else good, np.ones((1, 2)), keep)
        return solve_threshold(tokens, 0.04, reduce=reduce, rows=np.array([7 + index]))

    (elsewhere, here), _ = over_ranks(2, rank)
    assert "rows of another rank" in str(elsewhere)
    assert "rows 8 (first: row 8, position 1)" in str(here)


def test_a_reduction_in_place_on_tensors_works_as_all_reduce_does():
    xp = load("torch")
    d = np.array([[0.5, 0.5, 0.0625], [0.5, 0.5, 0.0625]])
    a, keep = np.ones_like(d), np.ones_like(d, dtype=bool)
    seen = []

    def twice(tensor):
        seen.append((tensor.dtype, tensor.device.type))
        tensor.mul_(2)

    tokens = batch_of(d, a, keep, xp)
    threshold = solve_threshold(tokens, 0.04, reduce=twice, rows=[0, 1])
    assert set(seen) == {(xp.int64, "cpu")}
    assert (threshold.active, threshold.masked) == (12, 8)


def test_row_numbers_are_needed_over_ranks_and_must_fit():
    one = batch_of(np.ones((2, 1)), np.ones((2, 1)), np.ones((2, 1), dtype=bool))
    with pytest.raises(ValueError, match="over ranks needs rows="):
        solve_threshold(one, 0.04, reduce=AllReduce(1).of(0))
    with pytest.raises(ValueError, match="2 entries for 1 batches"):
        solve_threshold([one], 0.04, rows=[[0, 1], [2, 3]])
    with pytest.raises(ValueError, match=r"shape \(3,\) for 2 rows"):
        solve_threshold(one, 0.04, rows=[0, 1, 2])
    with pytest.raises(ValueError, match="run from -1 to 0"):
        solve_threshold(one, 0.04, rows=[0, -1])


def test_a_large_mini_batch_gives_one_threshold_however_it_is_split():
    rng = np.random.default_rng(1)
    d = (0.3 * rng.standard_t(3, (64, 1000))).astype(np.float32).astype(np.float64)
    a = np.repeat(rng.standard_normal((64, 1)), 1000, axis=1)
    keep = rng.random(d.shape) < 0.9
    use_kernels(False)
    try:
        whole = solve_threshold(batch_of(d, a, keep), 0.04)
        assert 0 < whole.masked < whole.active
        order = rng.permutation(64)
        parts = np.array_split(order, 7)
        split = solve_threshold([batch_of(d[r], a[r], keep[r]) for r in parts], 0.04, rows=parts)
    finally:
        use_kernels(None)
    assert split == whole
