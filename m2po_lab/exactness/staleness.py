"""Stale data, exactly: the policies along a training run, and what an old one sampled."""

from dataclasses import dataclass

import numpy as np

from m2po_lab.core.batch import TokenBatch
from m2po_lab.exactness.problem import Floats, Outcomes, Problem, entropy, log_policy


@dataclass(frozen=True)
class Step:
    """One update on data of a given age.

    Attributes:
        lag: updates between the policy that sampled and the one that is trained.
        outcomes: every row that sampling can give.
        batch: those rows as tokens: A = reward minus the sampler's expected reward of the prompt.
        probability: (n,) of each row under the sampler.
        current: (states, vocabulary) log-probs of the policy that is trained.
        target: true policy gradient of the current policy, in the logits.
    """

    lag: int
    outcomes: Outcomes
    batch: TokenBatch
    probability: Floats
    current: Floats
    target: Floats

    @property
    def scores(self) -> Floats:
        """(n, horizon, parameters) gradient of each token's log-prob."""
        return self.outcomes.scores(self.current)

    @property
    def second_moment(self) -> float:
        """M2: expected d^2 of a token under the sampler, nats^2."""
        d = self.batch.log_ratio()
        return float(self.probability @ (d**2).mean(axis=1))

    @property
    def chi_square(self) -> float:
        """Expected (r - 1)^2 of a token under the sampler."""
        r = np.exp(self.batch.log_ratio())
        return float(self.probability @ ((r - 1) ** 2).mean(axis=1))

    @property
    def ratio_bound(self) -> float:
        """R: the smallest number with 1/R <= r <= R for every token that can occur."""
        return float(np.exp(np.abs(self.batch.log_ratio()).max()))


def policy_path(problem: Problem, updates: int, learning_rate: float, seed: int) -> list[Floats]:
    """Log-probs before each of `updates` steps of exact gradient ascent, and after the last."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 0.5, (problem.states, problem.vocabulary))
    outcomes, path = problem.outcomes(), []
    for _ in range(updates + 1):
        log_probs = log_policy(logits)
        path.append(log_probs)
        logits = logits + learning_rate * outcomes.policy_gradient(log_probs).reshape(logits.shape)
    return path


def stale_steps(
    problem: Problem, lags: int = 8, learning_rate: float = 0.5, seed: int = 0
) -> list[Step]:
    """One Step for every lag from 0 to `lags`, all of the last policy of one training run.

    The proximal policy is the one before the last update (at lag 0 the current one).
    """
    path = policy_path(problem, lags, learning_rate, seed)
    return [
        stale_step(problem, path[-1], path[-1 - lag], path[-1 - min(lag, 1)], lag)
        for lag in range(lags + 1)
    ]


def stale_step(
    problem: Problem,
    current: Floats,
    behavior: Floats,
    proximal: Floats | None = None,
    lag: int = 1,
) -> Step:
    """Everything that sampling from `behavior` can give to an update of `current`.

    Args:
        problem: the task.
        current: (states, vocabulary) log-probs of the policy that is trained.
        behavior: of the policy that sampled.
        proximal: of the one in between; None takes `behavior`.
        lag: how old the data count as.
    """
    outcomes = problem.outcomes()
    proximal = behavior if proximal is None else proximal
    advantage = outcomes.reward - outcomes.value(behavior)[outcomes.prompt]
    batch = TokenBatch(
        behavior_logp=outcomes.log_prob(behavior),
        proximal_logp=outcomes.log_prob(proximal),
        current_logp=outcomes.log_prob(current),
        advantage=advantage,
        entropy=entropy(behavior)[outcomes.state],
    )
    return Step(
        lag=lag,
        outcomes=outcomes,
        batch=batch,
        probability=outcomes.probability(behavior),
        current=current,
        target=outcomes.policy_gradient(current),
    )
