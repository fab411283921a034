import math
import pickle
import tracemalloc
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from m2po_lab.core import TokenBatch, host, selection, selection_keys
from m2po_lab.core.kernels import use_kernels
from m2po_lab.core.selection import apply, eligible, keep_m2po, solve_threshold
from m2po_lab.core.selection_keys import Sorted
from tests.conftest import asarray, load, to_numpy
from tests.core.selecting import CASES, batch_of, naive, problems, region


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_the_mask_of_every_reference_case(case, xp):
    d, a = (np.array(case[k], dtype=float) for k in ("log_ratio", "advantages"))
    tokens = batch_of(d, a, np.array(case["mask"], dtype=bool), xp, "float32")
    expected = case["expected"]["trinity_pr616"]
    if isinstance(expected, dict):
        with pytest.raises(ValueError, match=r"rows 0 \(first: row 0, position 0\)"):
            keep_m2po(tokens, case["tau"])
    else:
        mask = keep_m2po(tokens, case["tau"])
        assert mask.dtype == xp.bool
        np.testing.assert_array_equal(to_numpy(mask), np.array(expected, dtype=bool))


@settings(deadline=None, max_examples=400)
@given(problems())
def test_it_is_algorithm_1_on_random_and_hostile_input(problem):
    d, a, keep, budget = problem
    np.testing.assert_array_equal(
        keep_m2po(batch_of(d, a, keep), budget), naive(d, a, keep, budget)
    )


@settings(deadline=None, max_examples=100)
@given(problems())
def test_the_budget_is_kept_and_no_larger_set_without_a_mask_exists(problem):
    d, a, keep, budget = problem
    tokens = batch_of(d, a, keep)
    threshold = solve_threshold(tokens, budget)
    mask = apply(tokens, threshold)
    inside = region(d, a, keep)
    np.testing.assert_array_equal(to_numpy(eligible(tokens)), inside)
    assert not (keep & ~mask & ~inside).any()
    square = np.sort((d * d)[inside])
    stay = int((mask & inside).sum())
    means = [math.fsum(square[:n]) / n for n in range(1, square.size + 1)]
    assert stay == 0 or means[stay - 1] <= budget
    assert all(mean > budget for mean in means[stay:])
    assert (threshold.active, threshold.masked) == (square.size, square.size - stay)
    if stay:
        assert threshold.m2_after == means[stay - 1]
    if square.size:
        assert threshold.m2_before == means[-1]
    assert math.isnan(threshold.m2_after) == (stay == 0)
    assert (d * d)[inside & mask].max(initial=0) <= threshold.value
    assert (d * d)[inside & ~mask].min(initial=math.inf) >= threshold.value


@settings(deadline=None, max_examples=100)
@given(problems(), st.floats(0, 2), st.floats(0, 2))
def test_a_larger_budget_never_masks_a_token_more(problem, first, second):
    d, a, keep, _ = problem
    tokens, low, high = batch_of(d, a, keep), min(first, second), max(first, second)
    assert not (keep_m2po(tokens, low) & ~keep_m2po(tokens, high)).any()


@settings(deadline=None, max_examples=400)
@given(problems())
def test_sorting_and_digits_decide_alike(problem):
    d, a, keep, budget = problem
    tokens = batch_of(d, a, keep)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection_keys, "FEW", -1)
        by_digits = solve_threshold(tokens, budget)
    assert repr(solve_threshold(tokens, budget)) == repr(by_digits)


@pytest.mark.parametrize("n", [1000, 30_000])
@pytest.mark.parametrize("budget", [1e-3, 0.04, 0.09])
def test_sorting_and_digits_decide_alike_on_heavy_tails(n, budget):
    rng = np.random.default_rng(n)
    d = 0.3 * rng.standard_t(3, (10, n // 10))
    tokens = batch_of(d, rng.standard_normal((10, n // 10)), d < 9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection_keys, "FEW", -1)
        by_digits = solve_threshold(tokens, budget)
    assert 0 < by_digits.masked < by_digits.active
    assert solve_threshold(tokens, budget) == by_digits


def test_few_tokens_in_one_process_are_sorted_and_no_others(monkeypatch):
    sort = Mock(wraps=Sorted)
    monkeypatch.setattr(selection, "Sorted", sort)
    four = batch_of(np.ones((1, 4)), np.ones((1, 4)), np.ones((1, 4), dtype=bool))
    solve_threshold(four, 0.04)
    assert sort.call_count == 1
    solve_threshold(four, 0.04, reduce=lambda table: table, rows=[0])
    monkeypatch.setattr(selection_keys, "FEW", 3)
    solve_threshold(four, 0.04)
    assert sort.call_count == 1


@pytest.mark.parametrize("library", ["torch", "strict"])
@settings(deadline=None, max_examples=60)
@given(problem=problems())
def test_every_array_library_gives_the_same_threshold_and_mask(library, problem):
    d, a, keep, budget = problem
    here, there = batch_of(d, a, keep), batch_of(d, a, keep, load(library))
    assert repr(solve_threshold(here, budget)) == repr(solve_threshold(there, budget))
    np.testing.assert_array_equal(keep_m2po(here, budget), to_numpy(keep_m2po(there, budget)))


@settings(deadline=None, max_examples=60)
@given(problems())
def test_the_ragged_layout_gives_the_mask_of_the_padded_one(problem):
    d, a, keep, budget = problem
    rows, width = d.shape
    flat = TokenBatch(
        current_logp=d.ravel(),
        behavior_logp=np.zeros(d.size),
        advantage=a.ravel(),
        keep=keep.ravel(),
        lengths=np.full(rows, width),
    )
    mask = keep_m2po(flat, budget).reshape(d.shape)
    np.testing.assert_array_equal(mask, keep_m2po(batch_of(d, a, keep), budget))


@pytest.mark.parametrize("budget", [0.04, 0.2 * 0.2])
def test_equal_squares_on_the_budget_are_decided_by_the_float64_mean(budget):
    assert 0.2 * 0.2 > 0.04
    d, keep = np.full((1, 10), 0.2), np.ones((1, 10), dtype=bool)
    stay = [n for n in range(1, 11) if math.fsum([0.2 * 0.2] * n) / n <= budget]
    mask = keep_m2po(batch_of(d, np.ones((1, 10)), keep), budget)
    assert mask.sum() == max(stay, default=0)


def test_of_tied_tokens_the_first_ones_stay():
    d = np.array([[0.0625, 0.5, 0.5], [0.5, 0.5, 0.0625]])
    mask = keep_m2po(batch_of(d, np.ones_like(d), np.ones_like(d, dtype=bool)), 0.1)
    np.testing.assert_array_equal(mask, [[True, True, False], [False, False, True]])


def test_budget_zero_keeps_exact_zeros_and_infinity_keeps_everything():
    d = np.array([[0.0, 1e-300, 0.1, -0.1]])
    tokens = batch_of(d, np.ones_like(d), np.ones_like(d, dtype=bool))
    np.testing.assert_array_equal(keep_m2po(tokens, 0.0), [[True, True, False, True]])
    unbounded = solve_threshold(tokens, math.inf)
    assert (unbounded.masked, unbounded.value) == (0, math.inf)
    assert apply(tokens, unbounded).all()


def test_without_trust_region_tokens_there_is_no_mean(xp):
    d = asarray(xp, [[0.5, -0.5]])
    tokens = TokenBatch(current_logp=d, behavior_logp=d, advantage=asarray(xp, [1.0]))
    threshold = solve_threshold(tokens, 0.04)
    assert (threshold.active, threshold.masked) == (0, 0)
    assert math.isnan(threshold.m2_before)
    assert math.isnan(threshold.m2_after)
    assert to_numpy(apply(tokens, threshold)).all()


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_an_empty_batch_has_an_empty_mask(shape):
    nothing = np.zeros(shape)
    assert keep_m2po(batch_of(nothing, nothing, nothing != 0), 0.04).shape == shape


def test_squares_that_overflow_go_first():
    d = np.array([[1e160, 0.1, -1e160, 2e159]])
    mask = keep_m2po(batch_of(d, np.ones_like(d), np.ones_like(d, dtype=bool)), 0.04)
    np.testing.assert_array_equal(mask, [[False, True, True, False]])


def test_non_finite_log_ratios_raise_and_name_their_rows(xp):
    d = np.full((9, 2), 0.1)
    d[1:8, 1] = [math.nan, math.inf, -math.inf, 1, math.nan, math.nan, math.nan]
    d[8, 0] = math.nan
    keep = np.ones(d.shape, dtype=bool)
    keep[8, 0] = False
    named = r"6 kept tokens .* rows 1, 2, 3, 5, 6 and 1 more \(first: row 1, position 1\)"
    with pytest.raises(ValueError, match=named):
        solve_threshold(batch_of(d, np.zeros_like(d), keep, xp), 0.04)


@pytest.mark.parametrize("budget", [-0.1, math.nan, -math.inf])
def test_a_budget_that_is_no_bound_raises(budget):
    one = np.ones((1, 1))
    with pytest.raises(ValueError, match=r"budget is .*at least 0, such as the paper's 0\.04"):
        keep_m2po(batch_of(one, one, one > 0), budget)


def test_missing_columns_raise_by_name():
    one = np.ones((1, 1))
    with pytest.raises(ValueError, match="needs advantage"):
        solve_threshold(TokenBatch(current_logp=one, behavior_logp=one), 0.04)
    with pytest.raises(ValueError, match="proximal/behavior needs proximal_logp"):
        keep_m2po(batch_of(one, one, one > 0), 0.04, "proximal/behavior")
    with pytest.raises(ValueError, match="unknown ratio 'x'"):
        keep_m2po(batch_of(one, one, one > 0), 0.04, "x")
    with pytest.raises(ValueError, match="need advantage"):
        eligible(TokenBatch(current_logp=one, behavior_logp=one))


def test_another_ratio_is_selected_on_when_asked_for():
    zero, large = np.zeros((1, 2)), np.array([[0.1, 3.0]])
    tokens = TokenBatch(
        current_logp=large, proximal_logp=zero, behavior_logp=zero, advantage=np.ones(1)
    )
    assert keep_m2po(tokens, 0.04, "proximal/behavior").all()
    assert not keep_m2po(tokens, 0.04, "current/proximal").all()


def test_no_gradient_flows_through_and_the_input_is_left_alone():
    xp = load("torch")
    d = asarray(xp, [[0.1, 3.0, 0.1]], "float32").requires_grad_()
    tokens = TokenBatch(current_logp=d, behavior_logp=xp.zeros_like(d), advantage=xp.ones(1))
    mask = keep_m2po(tokens, 0.04)
    assert not mask.requires_grad
    assert mask.tolist() == [[True, False, True]]
    assert tokens.keep.all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_narrow_floats_are_selected_on_as_the_numbers_they_hold(dtype):
    xp = load("torch")
    rng = np.random.default_rng(3)
    d = xp.asarray(0.3 * rng.standard_normal((20, 30))).to(getattr(xp, dtype))
    a = xp.asarray(rng.standard_normal(20)).to(getattr(xp, dtype))
    narrow = TokenBatch(current_logp=d, behavior_logp=xp.zeros_like(d), advantage=a)
    wide = TokenBatch(
        current_logp=d.double(), behavior_logp=xp.zeros_like(d).double(), advantage=a.double()
    )
    assert solve_threshold(narrow, 0.04) == solve_threshold(wide, 0.04)


def test_a_threshold_survives_pickling():
    d = np.array([[0.5, 0.5, 0.0625, 0.5]])
    tokens = batch_of(d, np.ones_like(d), np.ones_like(d, dtype=bool))
    threshold = solve_threshold(tokens, 0.15)
    assert (threshold.ties, threshold.ties_kept) == (3, 1)
    assert (threshold.tie_row, threshold.tie_position) == (0, 0)
    copy = pickle.loads(pickle.dumps(threshold))
    assert copy == threshold
    np.testing.assert_array_equal(apply(tokens, copy), apply(tokens, threshold))


def test_the_threshold_in_nats_is_the_root_of_the_squared_one():
    d = np.array([[0.1, 0.5]])
    threshold = solve_threshold(batch_of(d, np.ones_like(d), d > 0), 0.04)
    assert 0.1 < threshold.log_ratio <= 0.5
    assert threshold.log_ratio == math.sqrt(threshold.value)


@pytest.mark.parametrize("layout", ["ragged", "padded", "one row", "long rows"])
def test_memory_beyond_the_input_is_a_few_chunks(layout):
    n = 1 << 22
    rng = np.random.default_rng(0)
    d = (0.3 * rng.standard_normal(n)).astype(np.float32)
    rows = {"ragged": 1, "padded": 1 << 12, "one row": 1, "long rows": 4}[layout]
    shape = (n,) if layout == "ragged" else (rows, n // rows)
    tokens = TokenBatch(
        current_logp=d.reshape(shape),
        behavior_logp=np.zeros(shape, dtype=np.float32),
        advantage=rng.standard_normal(shape if layout == "ragged" else rows).astype(np.float32),
        lengths=np.array([n]) if layout == "ragged" else None,
    )
    use_kernels(False)
    try:
        tracemalloc.start()
        solve_threshold(tokens, 0.04)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        use_kernels(None)
    assert peak < 8 * n / 2


@settings(deadline=None, max_examples=40)
@given(problems(), st.integers(1, 7))
def test_the_size_of_a_chunk_is_of_no_consequence(problem, chunk):
    d, a, keep, budget = problem
    assume(d.size > 1)
    whole = keep_m2po(batch_of(d, a, keep), budget)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "CHUNK", chunk)
        np.testing.assert_array_equal(keep_m2po(batch_of(d, a, keep), budget), whole)
