import math

import numpy as np
import pytest
from hypothesis import given, settings

from m2po_lab.core import TokenBatch
from m2po_lab.core.selection import keep_all_tokens, keep_areal, keep_m2po, keep_released
from tests.conftest import load, to_numpy
from tests.core.selecting import CASES, batch_of, problems, region

EXPECTED = {
    "areal": "areal_main_4aef98d",
    "all_tokens": "skyrl_fork_all_token_N_strict",
    "released": "official_af54a3e_miniclip_None",
    "released_miniclip": "official_af54a3e_miniclip_0.3_0.5",
}
VARIANTS = {
    "areal": keep_areal,
    "all_tokens": keep_all_tokens,
    "released": lambda batch, budget: keep_released(batch, budget).keep,
    "released_miniclip": lambda batch, budget: keep_released(batch, budget, 0.3, 0.5).keep,
}
WORKING = [case for case in CASES if "error" not in case["expected"][EXPECTED["released"]]]


def case_batch(case, xp=None, dtype="float32"):
    d, a = (np.array(case[k], dtype=float) for k in ("log_ratio", "advantages"))
    return batch_of(d, a, np.array(case["mask"], dtype=bool), xp, dtype)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_each_variant_gives_the_mask_of_its_implementation(case, variant, xp):
    expected = case["expected"][EXPECTED[variant]]
    if "error" in expected:
        with pytest.raises(ValueError, match="the authors' code crashes"):
            VARIANTS[variant](case_batch(case, xp), case["tau"])
        return
    mask = VARIANTS[variant](case_batch(case, xp), case["tau"])
    assert mask.dtype == xp.bool
    got = to_numpy(mask)
    if isinstance(expected, dict):
        # A gradient is 0 where A = 0, though nothing is clipped there.
        expected, got = expected["grad_nonzero"], got & (np.array(case["advantages"]) != 0)
    np.testing.assert_array_equal(got, np.array(expected, dtype=bool))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", WORKING, ids=lambda c: c["name"])
def test_the_released_code_gives_its_clip_range_and_means(case, dtype):
    expected = case["expected"]["official_af54a3e_miniclip_None"]
    got = keep_released(case_batch(case, load("numpy"), dtype), case["tau"])
    assert (got.clip_low, got.clip_high) == (expected["clip_low_eps"], expected["clip_high_eps"])
    assert got.m2_before == pytest.approx(expected["M2"], rel=2e-7)
    assert got.m2_after == pytest.approx(expected["M2_after"], rel=2e-7)


def test_released_reads_the_sign_of_the_first_position_in_either_layout():
    d = np.array([[0.5, 0.05, 0.0], [0.5, 0.05, 0.3]], dtype=np.float32)
    a = np.array([[1.0, -1.0, 1.0], [0.0, 1.0, 1.0]], dtype=np.float32)
    padded = batch_of(d, a, np.array([[1, 1, 0], [1, 1, 1]], dtype=bool))
    flat = TokenBatch(
        current_logp=np.append(d[0, :2], d[1]),
        behavior_logp=np.zeros(5, dtype=np.float32),
        advantage=np.append(a[0, :2], a[1]),
        lengths=np.array([2, 0, 3]),
    )
    one, other = keep_released(padded, 0.04), keep_released(flat, 0.04)
    assert one.clip_high == other.clip_high
    np.testing.assert_array_equal(one.keep[padded.keep], other.keep)


def test_released_clips_where_algorithm_1_masks_and_more():
    rng = np.random.default_rng(0)
    d = 0.15 * rng.standard_t(3, (64, 256)).astype(np.float32)
    a = np.repeat(rng.standard_normal((64, 1)), 256, axis=1)
    tokens = batch_of(d, a, np.ones(d.shape, dtype=bool))
    clipped, masked = ~keep_released(tokens, 0.04).keep, ~keep_m2po(tokens, 0.04)
    assert (clipped | ~masked).all()
    assert clipped.sum() > 1.5 * masked.sum() > 0


@settings(deadline=None, max_examples=150)
@given(problems())
def test_areal_keeps_the_longest_prefix_under_the_budget_and_at_least_one(problem):
    d, a, keep, budget = problem
    mask = keep_areal(batch_of(d, a, keep), budget)
    assert not (mask & ~keep).any()
    square = np.sort((d * d)[keep])
    under = [n for n in range(1, square.size + 1) if square[:n].cumsum()[-1] / n < budget]
    stay = max(under, default=min(square.size, 1))
    np.testing.assert_array_equal(np.sort((d * d)[mask]), square[:stay])


def test_areal_prefers_proximal_log_probs_and_the_last_of_tied_tokens():
    zero, tied = np.zeros((1, 3)), np.array([[0.5, 0.5, 0.5]])
    only = TokenBatch(current_logp=tied, behavior_logp=zero)
    both = TokenBatch(current_logp=tied, proximal_logp=zero, behavior_logp=zero)
    np.testing.assert_array_equal(keep_areal(only, 0.04), [[False, False, True]])
    assert keep_areal(both, 0.04).all()


@settings(deadline=None, max_examples=150)
@given(problems())
def test_all_tokens_drops_the_fewest_that_bring_the_mean_under_the_budget(problem):
    d, a, keep, budget = problem
    mask = keep_all_tokens(batch_of(d, a, keep), budget)
    inside = region(d, a, keep)
    assert not (keep & ~mask & ~inside).any()
    dropped = int((keep & ~mask).sum())
    removable = np.sort((d * d)[inside])[::-1]
    np.testing.assert_array_equal(np.sort((d * d)[keep & ~mask])[::-1], removable[:dropped])

    def mean(count):
        left = int(keep.sum()) - count
        whole = math.fsum((d * d)[keep]) - math.fsum(removable[:count])
        return whole / left if left else math.inf

    slack = 1e-9 * (1 + (d * d)[keep].sum())
    assert all(mean(k) >= budget - slack for k in range(dropped))
    assert dropped == removable.size or mean(dropped) < budget + slack


@pytest.mark.parametrize("variant", VARIANTS)
def test_missing_columns_and_bad_budgets_raise(variant):
    one = np.ones((1, 1))
    with pytest.raises(ValueError, match=r"needs (behavior_logp|current_logp|advantage)"):
        VARIANTS[variant](TokenBatch(proximal_logp=one), 0.04)
    if not variant.startswith("released"):
        with pytest.raises(ValueError, match="budget is nan"):
            VARIANTS[variant](batch_of(one, one, one > 0), math.nan)


@pytest.mark.parametrize("padding", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rule", [keep_released, keep_areal, keep_all_tokens])
def test_what_padding_holds_changes_nothing(rule, padding):
    d = np.asarray([[0.5, -0.1, 0.0], [-0.3, 0.2, 0.9]])
    keep = np.asarray([[True, True, False], [True, True, True]])

    def mask(fill):
        columns = {"behavior_logp": d * 0, "proximal_logp": d, "current_logp": d}
        batch = TokenBatch(
            **{name: np.where(keep, column, fill) for name, column in columns.items()},
            advantage=np.where(keep, 1.0, fill),
            keep=keep,
        )
        found = rule(batch, 0.04)
        return np.asarray(getattr(found, "keep", found)).tolist()

    assert mask(padding) == mask(0.0)
