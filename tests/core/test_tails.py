import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m2po_lab.core import largest, pareto_k, tail_length, top_share

GOLDEN = [
    [0.13063771217256503, 0.4093928333085983, 0.5454447560938629],
    [0.8463393722001987, 0.6508461243714719, 0.7443078902259512],
    [0.5140276831839626, 0.681050961815079, 0.5262326001917947],
    [0.6208981085218512, 0.8229677657513181, 0.7116083537576576],
]
finite = st.floats(-50, 50, allow_nan=False)


def k_hat(d):
    d = np.asarray(d, dtype=float)
    top = largest(d, np.ones(d.shape, bool), tail_length(d.size) + 1)
    return float(pareto_k(top.values, d.size))


@given(st.lists(finite, max_size=30), st.lists(finite, max_size=30), st.integers(1, 12))
def test_the_largest_of_pieces_are_the_largest_of_the_whole(left, right, size):
    parts = [largest(np.asarray(x, float), np.ones(len(x), bool), size) for x in (left, right)]
    whole = largest(np.asarray(left + right, float), np.ones(len(left + right), bool), size)
    assert (parts[0] + parts[1]).values.tolist() == whole.values.tolist()
    assert whole.values.tolist() == sorted(left + right, reverse=True)[:size]


def test_only_kept_values_count(xp):
    got = largest(
        xp.asarray([[1.0, 9.0], [3.0, 2.0]]), xp.asarray([[True, False], [True, True]]), 2
    )
    assert np.asarray(got.values).tolist() == [3.0, 2.0]


def test_sizes_must_agree_to_merge():
    one = largest(np.ones(1), np.ones(1, bool), 2)
    with pytest.raises(ValueError, match="largest 2 with the largest 3"):
        one + largest(np.ones(1), np.ones(1, bool), 3)


@pytest.mark.parametrize(
    ("n", "length"), [(0, 0), (24, 4), (25, 5), (224, 44), (225, 45), (1000, 94), (10**6, 3000)]
)
def test_the_tail_length_is_the_smaller_of_a_fifth_and_three_roots(n, length):
    assert tail_length(n) == length


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0])
def test_k_hat_finds_the_shape_of_pareto_weights(shape, xp):
    n = 200_000
    d = -shape * np.log(np.random.default_rng(3).random(n))
    top = largest(xp.asarray(d), xp.ones((n,), dtype=xp.bool), tail_length(n) + 1)
    assert float(pareto_k(top.values, n)) == pytest.approx(shape, abs=0.08)


def test_k_hat_equals_the_values_of_a_published_implementation():
    """ArviZ-stats 0.8.0, psislw(-d)[1], numpy 2.4: d as made here, computed 2026-11-30."""
    rng = np.random.default_rng(0)
    for n, expected in ((30, GOLDEN[0]), (100, GOLDEN[1]), (1000, GOLDEN[2]), (20000, GOLDEN[3])):
        samples = (
            rng.normal(size=n) * 2,
            rng.standard_t(3, size=n) * 0.3,
            -np.log(rng.random(n)) * 0.7,
        )
        for d, value in zip(samples, expected, strict=True):
            assert k_hat(d) == pytest.approx(value, rel=1e-9)


@given(st.floats(-300, 300))
def test_k_hat_does_not_depend_on_a_common_factor(shift):
    d = np.random.default_rng(5).standard_t(3, size=500)
    assert k_hat(d + shift) == pytest.approx(k_hat(d), rel=1e-6)


def test_k_hat_of_too_few_or_equal_weights_is_nan():
    assert math.isnan(k_hat(np.arange(24.0)))
    assert math.isnan(k_hat(np.zeros(100)))
    assert not math.isnan(k_hat(np.arange(25.0)))
    with pytest.raises(ValueError, match="needs the 95 largest, got 3"):
        pareto_k(np.asarray([3.0, 2.0, 1.0]), 1000)


def test_top_share_counts_the_ceiling_of_one_percent(xp):
    values = xp.asarray([3.0, 2.0, 1.0])
    assert float(top_share(values, xp.asarray(20.0, dtype=xp.float64), 100)) == 9 / 20
    assert float(top_share(values, xp.asarray(20.0, dtype=xp.float64), 101)) == 13 / 20
    assert math.isnan(float(top_share(values * 0, xp.asarray(0.0, dtype=xp.float64), 100)))
    with pytest.raises(ValueError, match="top 4 of 400 values"):
        top_share(values, xp.asarray(20.0, dtype=xp.float64), 400)


def test_k_hat_of_a_tail_of_equal_weights_is_a_number():
    d = np.concatenate([np.full(100, 1.0), np.zeros(1012)])
    assert math.isfinite(k_hat(d))


@pytest.mark.parametrize("scale", [1e-18, 1e-9, 1.0, 50.0, 400.0])
@pytest.mark.parametrize("seed", range(10))
def test_k_hat_is_finite_on_tails_of_any_width(scale, seed):
    d = np.random.default_rng(seed).normal(size=200) * scale
    rounded = np.round(d / scale * 2) * scale
    for values in (d, rounded, np.where(d > 0, d, 0.0)):
        assert math.isfinite(k_hat(values)) or np.ptp(np.sort(values)[-41:]) < 1e-15
