"""Closed forms of the bandits against enumeration and sampling."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.core import moments
from m2po_lab.core.moments import sums
from toy_envs import closed_form
from toy_envs.bandit import sample
from toy_envs.chain import Chain, ContextualBandit, answer_states
from toy_envs.softmax import log_policy

BANDITS = (Chain(digits=1), ContextualBandit(contexts=7, arms=4))
NAMES = [bandit.name for bandit in BANDITS]


def random_table(bandit, rng, spread=1.0):
    """Log-probs of independent normal logits."""
    logits = rng.normal(0, spread, (bandit.states, bandit.arms))
    return log_policy(np.eye(bandit.states), logits)


def enumerated(bandit):
    """Every prompt with every answer; prompts of a chain of one digit are its ten digits."""
    first = np.arange(10 if bandit.name == "bandit" else bandit.contexts)
    answers = np.array(list(product(range(bandit.arms), repeat=bandit.answer_length)))
    prompts = np.repeat(first, len(answers))[:, None]
    if bandit.name == "bandit":
        prompts = np.concatenate([prompts, np.full_like(prompts, 10)], axis=1)
    return prompts, np.tile(answers, (len(first), 1)), len(first)


def probabilities(bandit, table):
    prompts, answers, n = enumerated(bandit)
    states = answer_states(bandit, prompts, answers)
    return np.exp(table[states, answers].sum(axis=1)) / n


@pytest.mark.parametrize("bandit", BANDITS, ids=NAMES)
def test_the_value_is_the_sum_over_all_answers(bandit):
    table = random_table(bandit, np.random.default_rng(0))
    prompts, answers, _ = enumerated(bandit)
    expected = probabilities(bandit, table) @ bandit.reward(prompts, answers)
    assert closed_form.value(bandit.dynamics(), table) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("bandit", BANDITS, ids=NAMES)
def test_the_drift_of_tokens_and_answers_is_the_sum_over_all_answers(bandit):
    rng = np.random.default_rng(1)
    behavior, current = random_table(bandit, rng), random_table(bandit, rng)
    prompts, answers, _ = enumerated(bandit)
    states = answer_states(bandit, prompts, answers)
    d = (current - behavior)[states, answers]
    p = probabilities(bandit, behavior)
    for form, x in (
        (closed_form.token_drift, d),
        (closed_form.sequence_drift, d.sum(axis=1, keepdims=True)),
    ):
        mean, m2, first, second = (p @ f.mean(axis=1) for f in (x, x**2, np.exp(x), np.exp(2 * x)))
        exact = form(bandit.dynamics(), behavior, current)
        assert exact.mean == pytest.approx(mean, rel=1e-10)
        assert exact.m2 == pytest.approx(m2, rel=1e-10)
        assert exact.chi2 == pytest.approx(second - 1, rel=1e-10)
        assert exact.ess_fraction == pytest.approx(first**2 / second, rel=1e-10)


@pytest.mark.parametrize("bandit", [Chain(digits=3), *BANDITS], ids=["three", *NAMES])
def test_the_gradient_is_the_slope_of_the_value(bandit):
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(bandit.states, bandit.arms))
    dynamics, direction = bandit.dynamics(), rng.normal(size=logits.shape)

    def worth(step):
        return closed_form.value(dynamics, log_policy(np.eye(bandit.states), logits + step))

    table = log_policy(np.eye(bandit.states), logits)
    slope = (worth(1e-5 * direction) - worth(-1e-5 * direction)) / 2e-5
    gradient = closed_form.policy_gradient(dynamics, table)
    assert (gradient * direction).sum() == pytest.approx(slope, rel=1e-6)


def test_sampled_answers_agree_with_the_closed_forms():
    chain, rng = Chain(digits=3), np.random.default_rng(3)
    guess = np.exp(random_table(chain, rng, 0.6))
    behavior = np.log(0.3 * guess + 0.7 * chain.dynamics().score)
    current = log_policy(np.eye(200), behavior + rng.normal(0, 0.2, guess.shape))
    n = 40_000
    rollout = sample(chain, lambda state: behavior[state], chain.prompts(rng, n), rng)
    states = answer_states(chain, rollout.prompts, rollout.tokens)
    d = current[states, rollout.tokens] - behavior[states, rollout.tokens]
    exact = closed_form.token_drift(chain.dynamics(), behavior, current)
    whole = closed_form.sequence_drift(chain.dynamics(), behavior, current)
    worth = closed_form.value(chain.dynamics(), behavior)
    logged = sums(d, rollout.keep)
    for seen, known in (
        (rollout.reward, worth),
        ((d**2).mean(axis=1), exact.m2),
        (np.exp(2 * d).mean(axis=1) - 1, exact.chi2),
        (d.sum(axis=1) ** 2, whole.m2),
        (np.exp(2 * d.sum(axis=1)) - 1, whole.chi2),
    ):
        assert abs(seen.mean() - known) < 4 * seen.std() / np.sqrt(n)
    assert moments.m2(logged) == pytest.approx((d**2).mean())
    assert moments.ess_fraction(logged) == pytest.approx(exact.ess_fraction, rel=0.02)
    assert 0.1 < worth < 0.9


def test_states_are_met_as_often_as_occupancy_says():
    chain, rng = Chain(digits=2), np.random.default_rng(4)
    table, n = random_table(chain, rng), 50_000
    rollout = sample(chain, lambda state: table[state], chain.prompts(rng, n), rng)
    states = answer_states(chain, rollout.prompts, rollout.tokens)
    expected = closed_form.occupancy(chain.dynamics(), table)
    for t in range(4):
        counts = np.bincount(states[:, t], minlength=200)
        certain = expected[t] > 0
        assert counts[~certain].sum() == 0
        share = expected[t][certain]
        # Pearson's chi-square: mean degrees of freedom, variance twice that.
        excess = ((counts[certain] - n * share) ** 2 / (n * share)).sum() - certain.sum() + 1
        assert excess < 5 * np.sqrt(2 * certain.sum())


def test_the_value_of_many_policies_is_that_of_each():
    chain, rng = Chain(), np.random.default_rng(5)
    tables = np.stack([random_table(chain, rng) for _ in range(3)])
    behavior = tables[::-1]
    dynamics = chain.dynamics()
    for name in ("token_drift", "sequence_drift"):
        form = getattr(closed_form, name)
        together = form(dynamics, behavior, tables)
        for k in range(3):
            alone = form(dynamics, behavior[k], tables[k])
            assert together.m2[k] == pytest.approx(alone.m2, rel=1e-12)
            assert together.chi2[k] == pytest.approx(alone.chi2, rel=1e-12)
    for form in (closed_form.value, closed_form.policy_gradient):
        alone = np.stack([form(dynamics, table) for table in tables])
        np.testing.assert_allclose(form(dynamics, tables), alone, rtol=1e-12, atol=1e-15)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), spread=st.floats(0.01, 2))
def test_the_papers_bound_holds_for_any_two_policies(seed, spread):
    chain, rng = Chain(digits=2), np.random.default_rng(seed)
    behavior = random_table(chain, rng)
    current = log_policy(np.eye(200), behavior + rng.normal(0, spread, behavior.shape))
    exact = closed_form.token_drift(chain.dynamics(), behavior, current)
    bound = np.exp(np.abs(current - behavior).max())
    assert exact.chi2 <= bound**2 * exact.m2 * (1 + 1e-12)
    assert exact.mean <= 0


def test_a_policy_has_not_drifted_from_itself():
    chain = Chain()
    table = random_table(chain, np.random.default_rng(6))
    for form in (closed_form.token_drift, closed_form.sequence_drift):
        exact = form(chain.dynamics(), table, table)
        assert exact.m2 == 0
        assert exact.ess_fraction == pytest.approx(1, abs=1e-12)
