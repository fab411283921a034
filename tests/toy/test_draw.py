"""Sampling one token, and comparing the answers of a group."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toy_envs.policy import draw, group_advantage


def test_tokens_are_drawn_as_often_as_their_probability_says():
    logits = np.log(np.array([0.1, 0.2, 0.3, 0.4]))
    ids, _, _ = draw(np.tile(logits, (40_000, 1)), np.random.default_rng(0))
    counts = np.bincount(ids, minlength=4) / len(ids)
    # Four standard deviations of a binomial share.
    assert np.all(np.abs(counts - [0.1, 0.2, 0.3, 0.4]) < 4 * np.sqrt(0.25 / len(ids)))


def test_log_probs_and_entropies_are_those_of_the_softmax():
    p = np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])
    ids, logp, entropy = draw(np.log(p) + 3.0, np.random.default_rng(1))
    assert logp == pytest.approx(np.log(p[[0, 1], ids]), abs=1e-6)
    assert entropy == pytest.approx(-(p * np.log(p)).sum(axis=1), abs=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
@settings(max_examples=50)
def test_a_token_without_probability_is_never_drawn(seed, last):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(64, 8)) * 30
    logits[:, last:] = -np.inf
    ids, logp, entropy = draw(logits, rng)
    assert ids.max() < last
    assert np.isfinite(logp).all()
    assert np.isfinite(entropy).all()


def test_advantages_of_a_group_have_mean_zero_and_sample_deviation_one():
    reward = np.array([1.0, 0, 0, 0, 1, 1, 0, 1])
    groups = group_advantage(reward, 4).reshape(2, 4)
    assert groups.mean(axis=1) == pytest.approx([0, 0], abs=1e-12)
    assert groups.std(axis=1, ddof=1) == pytest.approx([1, 1])


def test_a_group_with_one_reward_throughout_teaches_nothing():
    # The mean of three times .1 is not .1 in floating point.
    assert (group_advantage(np.full(3, 0.1), 3) == 0).all()


def test_unscaled_advantages_are_the_distance_from_the_mean():
    assert group_advantage(np.array([1.0, 0, 0, 0]), 4, scaled=False) == pytest.approx(
        [0.75, -0.25, -0.25, -0.25]
    )
