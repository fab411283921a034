"""Problems with a handful of outcomes: prompts, token sequences of one length, a reward for each.

The policy is a table of logits, one row a state; a state is a prompt with the tokens so far. Every
expectation over responses is then a finite sum, and every gradient a small array.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """A task whose responses can be listed.

    Attributes:
        name: how tables call it.
        prompts: number of prompts, drawn uniformly.
        vocabulary: tokens to choose from at each position.
        horizon: tokens of a response; 1 makes it a contextual bandit.
        rewards: (prompts, vocabulary ** horizon), responses in lexicographic order.

    Raises:
        ValueError: rewards of another shape.
    """

    name: str
    prompts: int
    vocabulary: int
    horizon: int
    rewards: Floats

    def __post_init__(self) -> None:
        """Check the shape of the rewards."""
        expected = (self.prompts, self.vocabulary**self.horizon)
        if self.rewards.shape != expected:
            raise ValueError(
                f"{self.name}: rewards have shape {self.rewards.shape}, not {expected}"
            )

    @property
    def states_per_prompt(self) -> int:
        """Prefixes shorter than the horizon."""
        return sum(self.vocabulary**t for t in range(self.horizon))

    @property
    def states(self) -> int:
        """Rows of a table of logits."""
        return self.prompts * self.states_per_prompt

    def outcomes(self) -> "Outcomes":
        """Every prompt with every response."""
        responses = np.array(list(product(range(self.vocabulary), repeat=self.horizon)))
        prefix = np.zeros(responses.shape, dtype=np.int64)
        start, index = 0, np.zeros(len(responses), dtype=np.int64)
        for t in range(self.horizon):
            prefix[:, t] = start + index
            start += self.vocabulary**t
            index = index * self.vocabulary + responses[:, t]
        offset = np.repeat(np.arange(self.prompts), len(responses)) * self.states_per_prompt
        return Outcomes(
            prompt=np.repeat(np.arange(self.prompts), len(responses)),
            state=np.tile(prefix, (self.prompts, 1)) + offset[:, None],
            token=np.tile(responses, (self.prompts, 1)),
            reward=self.rewards.ravel(),
        )


@dataclass(frozen=True)
class Outcomes:
    """All rows that sampling can give, n of them.

    Attributes:
        prompt: (n,) which prompt.
        state: (n, horizon) row of the table of logits at each position.
        token: (n, horizon) token chosen there.
        reward: (n,) reward of the response.
    """

    prompt: Integers
    state: Integers
    token: Integers
    reward: Floats

    def log_prob(self, log_probs: Floats) -> Floats:
        """(n, horizon) log-probs of the chosen tokens under a table of log-probs."""
        return np.asarray(log_probs[self.state, self.token])

    def probability(self, log_probs: Floats) -> Floats:
        """(n,) probability of each row; they add up to 1."""
        prompts = int(self.prompt.max()) + 1
        return np.asarray(np.exp(self.log_prob(log_probs).sum(axis=1)) / prompts)

    def value(self, log_probs: Floats) -> Floats:
        """(prompts,) expected reward of each prompt."""
        weighted = self.probability(log_probs) * self.reward
        prompts = int(self.prompt.max()) + 1
        return np.bincount(self.prompt, weighted, prompts).astype(np.float64) * prompts

    def scores(self, log_probs: Floats) -> Floats:
        """(n, horizon, states * vocabulary) gradient of each token's log-prob in the logits."""
        n, horizon = self.state.shape
        states, vocabulary = log_probs.shape
        scores = np.zeros((n, horizon, states, vocabulary))
        row, position = np.indices((n, horizon))
        scores[row, position, self.state, :] = -np.exp(log_probs)[self.state]
        scores[row, position, self.state, self.token] += 1
        return scores.reshape(n, horizon, -1)

    def policy_gradient(self, log_probs: Floats) -> Floats:
        """Gradient of the expected reward in the logits, (states * vocabulary,)."""
        weight = self.probability(log_probs) * self.reward
        return np.asarray(np.einsum("n,nhp->p", weight, self.scores(log_probs)))


def log_policy(logits: Floats) -> Floats:
    """Log-probs of a table of logits, row by row."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def entropy(log_probs: Floats) -> Floats:
    """Entropy of each state, nats."""
    return np.asarray(-(np.exp(log_probs) * log_probs).sum(axis=1))


def bandit(prompts: int = 2, arms: int = 3) -> Problem:
    """A contextual bandit: one token a response, another best arm for every prompt."""
    best = np.arange(prompts)[:, None] % arms == np.arange(arms)[None]
    second = (np.arange(prompts)[:, None] + 1) % arms == np.arange(arms)[None]
    return Problem("bandit", prompts, arms, 1, best + 0.5 * second)


def uneven_bandit(prompts: int = 4) -> Problem:
    """A bandit of two arms where one prompt pays five times as much, so that its tokens drift far.

    The drift of a mini-batch then has a tail, as that of language models does.
    """
    pay = np.where(np.arange(prompts) == 0, 1.0, 0.2)
    best = np.arange(prompts) % 2
    return Problem("uneven bandit", prompts, 2, 1, pay[:, None] * (best[:, None] == np.arange(2)))


def short_sequence(vocabulary: int = 2, horizon: int = 3) -> Problem:
    """One prompt; reward 1 if the tokens add up to a multiple of three, else 0."""
    totals = np.array([sum(r) for r in product(range(1, vocabulary + 1), repeat=horizon)])
    return Problem("sequence", 1, vocabulary, horizon, (totals % 3 == 0).astype(float)[None])
