"""The paper's bound on the second moment, with exact expectations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.exactness import bandit, log_policy, short_sequence, stale_step, stale_steps

TOLERANCE = 1 + 1e-12


@pytest.mark.parametrize("problem", [bandit(), short_sequence(3, 3)], ids=lambda p: p.name)
def test_chi_square_is_at_most_r_squared_times_m2_at_every_lag(problem):
    for step in stale_steps(problem, learning_rate=1.0):
        bound = step.ratio_bound**2 * step.second_moment
        assert step.chi_square <= bound * TOLERANCE
        mean_abs = step.probability @ np.abs(step.batch.log_ratio()).mean(axis=1)
        assert mean_abs <= np.sqrt(step.second_moment) * TOLERANCE


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), spread=st.floats(0.01, 3))
def test_the_bound_holds_for_any_two_policies(seed, spread):
    problem, rng = short_sequence(), np.random.default_rng(seed)
    current, behavior = (
        log_policy(rng.normal(0, spread, (problem.states, problem.vocabulary))) for _ in range(2)
    )
    step = stale_step(problem, current, behavior)
    assert step.chi_square <= step.ratio_bound**2 * step.second_moment * TOLERANCE


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_on_a_bandit_the_expected_square_is_the_chi_square_divergence(seed):
    problem, rng = bandit(), np.random.default_rng(seed)
    current, behavior = (log_policy(rng.normal(size=(2, 3))) for _ in range(2))
    divergence = (np.exp(2 * current - behavior).sum(axis=1) - 1).mean()
    assert stale_step(problem, current, behavior).chi_square == pytest.approx(divergence)


def test_drift_grows_with_lag():
    moments = [step.second_moment for step in stale_steps(bandit())]
    assert moments[0] == 0
    assert (np.diff(moments) > 0).all()
