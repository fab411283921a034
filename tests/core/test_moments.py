import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m2po_lab.core import STATISTICS, TokenBatch, k3_terms, sums
from m2po_lab.core import moments as m

FINISHED = {name: s for name, s in STATISTICS.items() if s.finish is not None}
log_ratios = st.lists(
    st.floats(-30, 30, allow_nan=False, allow_subnormal=True), min_size=1, max_size=40
)


def finish(d, keep=None, rows=0):
    d = np.asarray(d, dtype=float)
    keep = np.ones(d.shape, bool) if keep is None else np.asarray(keep)
    total = sums(d, keep, rows)
    return {name: float(s.finish(total)) for name, s in FINISHED.items()}


def test_on_policy_every_statistic_has_its_exact_value(xp):
    d = xp.zeros((3, 4), dtype=xp.float64)
    total = sums(d, xp.ones((3, 4), dtype=xp.bool))
    for name, statistic in FINISHED.items():
        assert float(statistic.finish(total)) == statistic.on_policy, name


def test_two_tokens_by_hand(xp):
    d = xp.asarray([[1.0, -2.0, float("nan")]])
    total = sums(d, xp.asarray([[True, True, False]]), 1)
    e, inverse = math.e, math.exp(-2)
    expected = {
        "mean": -0.5,
        "m2": 2.5,
        "k1": 0.5,
        "k2": 1.25,
        "k3": (e - 2 + inverse + 1) / 2,
        "chi2": (e**2 + inverse**2) / 2 - 1,
        "ess_fraction": (e + inverse) ** 2 / (2 * (e**2 + inverse**2)),
        "ratio_mean": (e + inverse) / 2,
        "ratio_max": e,
        "log_ratio_min": -2.0,
        "log_ratio_max": 1.0,
        "abs_mean": 1.5,
    }
    assert set(expected) == set(FINISHED)
    for name, value in expected.items():
        assert float(FINISHED[name].finish(total)) == pytest.approx(value, rel=1e-14), name
    assert int(total.n) == 2
    assert int(total.rows) == 1


def test_nothing_to_average_is_nan(xp):
    empty = sums(xp.asarray([[1.0]]), xp.asarray([[False]]))
    nothing = sums(xp.zeros((0,), dtype=xp.float64), xp.zeros((0,), dtype=xp.bool))
    for total in (empty, nothing, empty + nothing):
        assert int(total.n) == 0
        for name, statistic in FINISHED.items():
            assert math.isnan(float(statistic.finish(total))), name


@given(log_ratios, log_ratios)
def test_sums_of_pieces_are_the_sums_of_the_whole(left, right):
    whole = sums(np.asarray(left + right), np.ones(len(left + right), bool), 2)
    pieces = [sums(np.asarray(x), np.ones(len(x), bool), 1) for x in (left, right)]
    merged = pieces[0] + pieces[1]
    swapped = pieces[1] + pieces[0]
    for name in whole.__dataclass_fields__:
        assert getattr(merged, name) == pytest.approx(getattr(whole, name), rel=1e-12, abs=1e-12)
        assert getattr(swapped, name) == getattr(merged, name)


@given(log_ratios)
def test_numpy_torch_and_strict_give_the_same_digits(values):
    torch = pytest.importorskip("torch")
    strict = pytest.importorskip("array_api_strict")
    reference = finish(values)
    for xp in (torch, strict):
        d = xp.asarray(values, dtype=xp.float64)
        total = sums(d, xp.ones(d.shape, dtype=xp.bool))
        for name, statistic in FINISHED.items():
            assert float(statistic.finish(total)) == pytest.approx(
                reference[name], rel=1e-12, abs=1e-14
            ), name


@given(log_ratios)
def test_ranges_hold_on_any_input(values):
    for name, value in finish(values).items():
        assert FINISHED[name].low <= value <= FINISHED[name].high, name


@given(log_ratios)
def test_m2_is_zero_only_on_policy_and_bounds_the_mean(values):
    got = finish(values)
    assert (got["m2"] == 0) == all(x * x == 0 for x in values)
    assert got["abs_mean"] <= math.sqrt(got["m2"]) * (1 + 1e-12) + 1e-150
    assert got["k1"] == -got["mean"]


@given(st.floats(-1e-3, 1e-3))
def test_k3_has_full_precision_near_zero(d):
    exact = math.fsum(d**k / math.factorial(k) for k in range(2, 12))
    assert float(k3_terms(np.asarray(d))) == pytest.approx(exact, rel=2e-9, abs=1e-300)


def test_ess_and_the_sums_survive_weights_that_overflow(xp):
    total = sums(xp.asarray([800.0, 800.0, -900.0]), xp.ones((3,), dtype=xp.bool))
    assert float(m.ess_fraction(total)) == pytest.approx(2 / 3, rel=1e-12)
    assert float(m.chi2(total)) == math.inf
    assert float(m.ratio_max(total)) == math.inf
    assert float(m.m2(total)) == pytest.approx((2 * 800**2 + 900**2) / 3)


def test_ess_does_not_depend_on_a_common_factor():
    rng = np.random.default_rng(0)
    d = rng.normal(size=200)
    assert finish(d + 500)["ess_fraction"] == pytest.approx(finish(d)["ess_fraction"], rel=1e-12)


def test_ess_and_chi2_cannot_see_a_ratio_that_falls_to_zero():
    low, high = [0.0] * 99 + [-20.0], [0.0] * 99 + [3.0]
    assert finish(low)["ess_fraction"] > 0.98
    assert finish(low)["chi2"] < 0
    assert finish(low)["m2"] == pytest.approx(4.0)
    assert finish(high)["ess_fraction"] < 0.5


def test_gaussian_log_ratios_have_their_closed_forms():
    rng = np.random.default_rng(1)
    mu, sigma, n = -0.05, 0.3, 1_000_000
    got = finish(rng.normal(mu, sigma, n))
    assert got["m2"] == pytest.approx(mu**2 + sigma**2, rel=0.01)
    assert got["ess_fraction"] == pytest.approx(math.exp(-(sigma**2)), rel=0.01)
    assert got["chi2"] == pytest.approx(math.exp(2 * mu + 2 * sigma**2) - 1, rel=0.05)
    assert got["k3"] == pytest.approx(math.exp(mu + sigma**2 / 2) - 1 - mu, rel=0.02)


def test_a_two_armed_bandit_has_its_closed_forms():
    """Behavior plays arm 1 with q, current with p; every draw in its exact proportion."""
    q, p, n = 0.25, 0.4, 400
    arms = np.asarray([1] * int(q * n) + [0] * int((1 - q) * n))
    behavior = np.log(np.where(arms == 1, q, 1 - q))
    current = np.log(np.where(arms == 1, p, 1 - p))
    batch = TokenBatch(behavior_logp=behavior[:, None], current_logp=current[:, None])
    got = finish(batch.log_ratio(), batch.keep)
    high, low = math.log(p / q), math.log((1 - p) / (1 - q))
    assert got["m2"] == pytest.approx(q * high**2 + (1 - q) * low**2, rel=1e-12)
    assert got["ratio_mean"] == pytest.approx(1, rel=1e-12)
    second = p**2 / q + (1 - p) ** 2 / (1 - q)
    assert got["chi2"] == pytest.approx(second - 1, rel=1e-12)
    assert got["ess_fraction"] == pytest.approx(1 / second, rel=1e-12)
    kl = q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))
    assert got["k1"] == pytest.approx(kl, rel=1e-12)
    assert got["k3"] == pytest.approx(kl, rel=1e-12)
