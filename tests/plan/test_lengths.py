"""Lengths: the mean that was asked for, moments as in closed form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from full_scale.plan.lengths import Lengths

limits = st.floats(10, 1e5)
sigmas = st.floats(0, 2.5)
shares = st.floats(0.01, 0.95)


@given(limit=limits, sigma=sigmas, share=shares)
def test_the_mean_after_the_cut_is_the_one_asked_for(limit, sigma, share):
    assert Lengths.with_mean(share * limit, sigma, limit).moment(1) == pytest.approx(
        share * limit, rel=1e-6
    )


@given(limit=limits, sigma=sigmas, share=shares)
def test_moments_and_cut_are_those_of_the_samples(limit, sigma, share):
    lengths = Lengths.with_mean(share * limit, sigma, limit)
    drawn = lengths.sample(np.random.default_rng(0), 40_000)
    assert drawn.max() <= limit
    error = 6 / 200  # six standard errors of a variable within 0 and 1
    assert np.mean(drawn / limit) == pytest.approx(lengths.moment(1) / limit, abs=error)
    assert np.mean((drawn / limit) ** 2) == pytest.approx(lengths.moment(2) / limit**2, abs=error)
    assert np.mean(drawn >= limit) == pytest.approx(lengths.cut(), abs=error)


def test_without_spread_all_are_equal():
    lengths = Lengths.with_mean(300, 0, 1000)
    assert lengths.sample(np.random.default_rng(0), 5) == pytest.approx([300] * 5)
    assert (lengths.moment(1), lengths.moment(2)) == pytest.approx((300, 9e4))
    assert lengths.cut() == 0


@pytest.mark.parametrize("mean", [0, -1, 1001])
def test_a_mean_outside_the_limit_is_refused(mean):
    with pytest.raises(ValueError, match="under a limit of 1000"):
        Lengths.with_mean(mean, 1, 1000)
