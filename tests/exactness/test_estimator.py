"""Exact moments of objectives against closed forms on two arms, and what holds for all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.core.objectives import OBJECTIVES, objective
from m2po_lab.exactness import (
    Problem,
    bandit,
    batch_moments,
    compare,
    estimator_moments,
    row_moments,
    short_sequence,
    stale_step,
    stale_steps,
    unbiased_lags,
)

PROBABILITY = st.floats(0.05, 0.95)
TWO_ARMS = Problem("two arms", 1, 2, 1, np.array([[0.0, 1.0]]))
SEPARABLE = sorted(n for n, spec in OBJECTIVES.items() if spec.scope in ("token", "sequence"))


def two_arms(p, q):
    """Arm 1 pays 1; the current policy takes it with probability p, the sampler with q."""
    return stale_step(TWO_ARMS, np.log([[1 - p, p]]), np.log([[1 - q, q]]))


def make(name, **params):
    return objective(name, "sequence_sum", **params)


def arm_one(moments):
    """Expected gradient in the logit of arm 1."""
    return moments.mean[1]


@settings(max_examples=50, deadline=None)
@given(p=PROBABILITY, q=PROBABILITY)
def test_on_two_arms_importance_sampling_is_unbiased_with_the_variance_of_the_formula(p, q):
    step = two_arms(p, q)
    moments = estimator_moments(make("is"), step)
    assert arm_one(moments) == pytest.approx(p * (1 - p))
    assert moments.relative_bias(step.target) < 1e-12
    square = (p * (1 - q) * (1 - p)) ** 2 / q + ((1 - p) * q * p) ** 2 / (1 - q)
    assert moments.variance == pytest.approx(2 * square - 2 * (p * (1 - p)) ** 2, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(p=PROBABILITY, q=PROBABILITY)
def test_on_two_arms_reinforce_takes_the_gradient_of_the_sampler(p, q):
    step = two_arms(p, q)
    moments = estimator_moments(make("reinforce"), step)
    assert arm_one(moments) == pytest.approx(q * (1 - q))


@pytest.mark.parametrize(("p", "q", "expected"), [(0.5, 0.4, 0.1), (0.6, 0.45, 0.0)])
def test_on_two_arms_ppo_loses_the_arms_beyond_its_bounds(p, q, expected):
    # r_1 = p/q is beyond 1.2 in both; r_0 = (1-p)/(1-q) is .83 in the first, .73 in the second
    assert arm_one(estimator_moments(make("ppo"), two_arms(p, q))) == pytest.approx(expected)


@pytest.mark.parametrize("rows", [1, 2])
def test_m2po_without_a_budget_drops_every_arm_that_moved_as_it_should_and_no_other(rows):
    learned = estimator_moments(make("m2po", budget=0), two_arms(0.6, 0.4), rows)
    np.testing.assert_allclose(learned.mean, 0, atol=1e-15)
    step = two_arms(0.4, 0.6)
    unlearned = estimator_moments(make("m2po", budget=0), step, rows)
    assert unlearned.relative_bias(step.target) < 1e-12


def test_m2po_with_budget_to_spare_is_unbiased_where_importance_sampling_is():
    step = stale_steps(bandit(), lags=2)[2]
    moments = estimator_moments(make("m2po", budget=10.0), step, rows=2)
    plain = estimator_moments(make("is"), step)
    assert moments.relative_bias(step.target) < 1e-12
    assert moments.variance == pytest.approx(plain.variance)


def test_in_a_mini_batch_one_row_decides_about_another():
    # alone, the one active token is over the budget; beside a small one the mean is within it
    step = two_arms(0.5, 0.4)
    alone, beside = (batch_moments(make("m2po", budget=0.045), step, rows) for rows in (1, 2))
    assert arm_one(alone) == pytest.approx(0.5 * 0.4 * 0.5)
    assert arm_one(beside) > arm_one(alone) + 0.01


@pytest.mark.parametrize("name", SEPARABLE)
def test_all_batches_together_have_the_moments_of_independent_rows(name):
    step = stale_steps(short_sequence(2, 2), lags=3)[3]
    one, two = row_moments(make(name), step), batch_moments(make(name), step, rows=2)
    np.testing.assert_allclose(two.mean, one.mean, atol=1e-14)
    assert two.variance == pytest.approx(one.variance, abs=1e-12)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
@pytest.mark.parametrize("problem", [bandit(), short_sequence()], ids=lambda p: p.name)
def test_on_policy_every_objective_has_the_policy_gradient(name, problem):
    step = stale_steps(problem, lags=0)[0]
    assert estimator_moments(make(name), step, rows=2).relative_bias(step.target) < 1e-9


def test_on_sequences_only_the_product_of_all_ratios_is_unbiased():
    step = stale_steps(short_sequence(), lags=4)[4]
    exact = make("tis_sequence", cap=np.inf, proximal=False)
    assert estimator_moments(exact, step).relative_bias(step.target) < 1e-12
    token = estimator_moments(make("is"), step)
    assert token.relative_bias(step.target) > 0.01
    closer = estimator_moments(make("minpro", eps_low=1.0, eps_high=1e9), step)
    assert closer.relative_bias(step.target) < token.relative_bias(step.target)


def test_too_many_batches_are_refused():
    step = stale_steps(short_sequence(), lags=1)[1]
    with pytest.raises(ValueError, match=r"8\^6 batches are more than 200000; pass fewer rows"):
        estimator_moments(make("m2po"), step, rows=6)


def test_the_table_has_a_row_for_every_objective_and_lag_and_says_what_was_refused():
    steps = stale_steps(bandit(), lags=1)
    rows = compare(steps, ["is", "m2po"], rows=2, m2po={"budget": 10.0})
    assert [(r.objective, r.lag, r.rows) for r in rows] == [
        ("is", 0, 1),
        ("is", 1, 1),
        ("m2po", 0, 2),
        ("m2po", 1, 2),
    ]
    assert unbiased_lags(rows) == {"is": 1, "m2po": 1}
    refused = compare(steps[1:], ["m2po_released"], rows=1, m2po_released={"budget": 0.0})
    assert refused[0].refused
    assert np.isnan(refused[0].relative_bias)
    assert unbiased_lags(refused) == {"m2po_released": -1}
