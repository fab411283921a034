"""Enumeration: probabilities, values and gradients of small problems."""

import numpy as np
import pytest

from m2po_lab.exactness import Problem, bandit, log_policy, short_sequence

PROBLEMS = [bandit(), bandit(3, 2), short_sequence(), short_sequence(3, 2)]


def table(problem, seed=0):
    logits = np.random.default_rng(seed).normal(size=(problem.states, problem.vocabulary))
    return logits, log_policy(logits)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: f"{p.name}{p.rewards.shape}")
def test_probabilities_of_all_outcomes_add_up_to_one(problem):
    outcomes = problem.outcomes()
    assert outcomes.probability(table(problem)[1]).sum() == pytest.approx(1)
    assert len(np.unique(outcomes.state)) == problem.states


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: f"{p.name}{p.rewards.shape}")
def test_the_policy_gradient_is_the_derivative_of_the_expected_reward(problem):
    logits, log_probs = table(problem)
    outcomes, step = problem.outcomes(), 1e-6
    numeric = np.zeros_like(logits)
    for index in np.ndindex(*logits.shape):
        shift = np.zeros_like(logits)
        shift[index] = step
        up, down = (outcomes.value(log_policy(logits + s * shift)).mean() for s in (1, -1))
        numeric[index] = (up - down) / (2 * step)
    np.testing.assert_allclose(outcomes.policy_gradient(log_probs), numeric.ravel(), atol=1e-9)


def test_a_state_is_the_prompt_with_the_tokens_so_far():
    outcomes = short_sequence(2, 3).outcomes()
    np.testing.assert_array_equal(outcomes.token[5], [1, 0, 1])
    np.testing.assert_array_equal(outcomes.state[5], [0, 2, 5])
    same = outcomes.state[:, 2] == 5
    np.testing.assert_array_equal(outcomes.token[same][:, :2], [[1, 0], [1, 0]])


def test_rewards_of_the_wrong_shape_are_refused():
    with pytest.raises(ValueError, match=r"x: rewards have shape \(1, 3\), not \(1, 4\)"):
        Problem("x", 1, 2, 2, np.zeros((1, 3)))
