"""What notebook 01 computes, against closed forms."""

import numpy as np
import pytest

from m2po_lab.tutorials.lessons import weights

LOG_MU = np.log([0.4, 0.25, 0.15, 0.15, 0.05])
REWARD = np.eye(5)[3]


def test_a_tilt_multiplies_the_odds_of_one_answer_and_leaves_the_others_in_proportion():
    log_pi = weights.tilted(LOG_MU, 3, 2.0)
    assert np.exp(log_pi).sum() == pytest.approx(1)
    d = log_pi - LOG_MU
    assert d[3] - d[0] == pytest.approx(2.0)
    assert d[[0, 1, 2, 4]] == pytest.approx(d[0])


def test_a_population_gives_expectations_without_noise():
    log_pi = weights.tilted(LOG_MU, 4, -8.0)
    mu, d = np.exp(LOG_MU), log_pi - LOG_MU
    names = ("k1", "m2", "chi2", "ess_fraction")
    found = weights.statistics(weights.population(LOG_MU, log_pi), names)
    square = mu @ np.exp(2 * d)
    exact = (-mu @ d, mu @ d**2, square - 1, 1 / square)
    assert tuple(found.values()) == pytest.approx(exact)


def test_weights_take_the_bias_out_and_put_variance_in():
    log_pi = weights.tilted(LOG_MU, 3, 2.0)
    found = weights.estimates(LOG_MU, log_pi, REWARD, samples=200, repetitions=4000)
    p, r = np.exp(log_pi[3]), np.exp(log_pi[3] - LOG_MU[3])
    error = found.weighted.std() / np.sqrt(4000)
    assert found.truth == pytest.approx(p)
    assert abs(found.weighted.mean() - p) < 4 * error
    assert found.plain.mean() == pytest.approx(0.15, abs=0.002)
    assert found.weighted.std() == pytest.approx(np.sqrt(p * (r - p) / 200), rel=0.05)
    assert found.fresh.std() == pytest.approx(np.sqrt(p * (1 - p) / 200), rel=0.05)


def test_the_worth_of_an_answer_is_that_of_a_token_to_the_power_of_its_length():
    near = weights.tilted(LOG_MU, 3, 0.3)
    one, eight = weights.worth_of_answers(LOG_MU, near, (1, 8))
    assert eight == pytest.approx(one**8, rel=0.03)


def test_the_same_seed_gives_the_same_numbers():
    near = weights.tilted(LOG_MU, 3, 0.5)
    first, again = (weights.mini_batches(LOG_MU, near, count=20, seed=7) for _ in range(2))
    assert all(np.array_equal(first[name], again[name]) for name in first)


def test_what_no_sums_can_finish_is_refused():
    batch = weights.population(LOG_MU, LOG_MU)
    with pytest.raises(ValueError, match="pareto_k is no function of sums"):
        weights.statistics(batch, ("pareto_k",))
