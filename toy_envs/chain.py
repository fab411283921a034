"""Bandits small enough to be solved exactly: contexts, arms, and chains of them.

A bandit here is a task whose tokens are chosen in a few hundred states, and whose reward is the
product of one score a token. Value, drift and gradient of a policy are then finite sums
(`toy_envs.closed_form`).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from toy_envs.tasks import RunningSum, Task, Tokens

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Dynamics:
    """What sampling does, over random prompts: S states, A arms, T tokens.

    Attributes:
        start: (S,) distribution of the state of the first token.
        transition: (S, A, S) distribution of the next state.
        score: (S, A); the reward of an answer is the product of the scores of its tokens.
        horizon: tokens T of an answer.
    """

    start: Floats
    transition: Floats
    score: Floats
    horizon: int


class Bandit(Task, Protocol):
    """A task with few states; arms are the tokens 0 to arms - 1.

    Attributes:
        states: how many.
        arms: how many, the same in every state.
        inputs: (states, n) what random features see of a state.
    """

    @property
    def states(self) -> int: ...  # noqa: D102
    @property
    def arms(self) -> int: ...  # noqa: D102
    @property
    def inputs(self) -> Floats: ...  # noqa: D102

    def first_state(self, prompts: Tokens) -> NDArray[np.int64]:
        """State (R,) in which the first token of the answers to (R, P) prompts is chosen."""
        ...

    def next_state(
        self, prompts: Tokens, position: int, state: NDArray[np.int64], arm: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """State (R,) after the token at `position` was chosen; not asked for after the last."""
        ...

    def dynamics(self) -> Dynamics:
        """States, transitions and scores over random prompts."""
        ...


def answer_states(bandit: Bandit, prompts: Tokens, answers: Tokens) -> NDArray[np.int64]:
    """Return the state (R, T) in which each token of the answers was chosen."""
    states = np.empty(answers.shape, np.int64)
    states[:, 0] = bandit.first_state(prompts)
    for t in range(1, answers.shape[1]):
        states[:, t] = bandit.next_state(prompts, t - 1, states[:, t - 1], answers[:, t - 1])
    return states


@dataclass(frozen=True)
class Chain(RunningSum):
    """Running sums modulo 10 as a chain of bandits: copy the digit, write the sum, go on.

    A state is (phase, digit, previous sum). The digit is that of the prompt while it is copied and
    the copy while the sum is written, so a wrong copy leads astray as it would in text.
    """

    noise: float = 0.35
    name: str = "bandit"

    @property
    def states(self) -> int:
        """Two phases, ten digits, ten sums."""
        return 200

    @property
    def arms(self) -> int:
        """The digits."""
        return 10

    @cached_property
    def inputs(self) -> Floats:
        """(200, 22): phase, digit and sum, each one-hot; a row has length 1.

        The length sets how much random features share beside the table: longer, and the collapse
        without a trust region goes deeper, and M2PO dips too.
        """
        state = np.arange(self.states)
        parts = (np.eye(2)[state // 100], np.eye(10)[state // 10 % 10], np.eye(10)[state % 10])
        whole: Floats = np.concatenate(parts, axis=1) / np.sqrt(3)
        return whole

    def first_state(self, prompts: Tokens) -> NDArray[np.int64]:
        """Copy the first digit; the sum so far is 0."""
        return prompts[:, 0] * 10

    def next_state(
        self, prompts: Tokens, position: int, state: NDArray[np.int64], arm: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Behind a copy its sum is written; behind a sum the next digit is copied."""
        if position % 2 == 0:
            return 100 + arm * 10 + state % 10
        return prompts[:, (position + 1) // 2] * 10 + arm

    def dynamics(self) -> Dynamics:
        """Digits of the prompts are uniform, so the next digit is, whatever came before."""
        start, score = np.zeros(200), np.zeros((200, 10))
        transition = np.zeros((200, 10, 200))
        digit, total = np.indices((10, 10))
        copying, summing, arm = digit * 10 + total, 100 + digit * 10 + total, np.arange(10)
        start[arm * 10] = 0.1
        score[copying, digit] = 1.0
        score[summing, (digit + total) % 10] = 1.0
        for a in arm:
            transition[copying, a, 100 + a * 10 + total] = 1.0
            for following in arm:
                transition[summing, a, following * 10 + a] = 0.1
        return Dynamics(start, transition, score, self.answer_length)


@dataclass(frozen=True)
class ContextualBandit:
    """One token a prompt: which arm is right depends on the context, and one is.

    Attributes:
        contexts: how many, drawn uniformly.
        arms: how many.
        noise: probability that the teacher of the warm start pulls a random arm.
    """

    contexts: int = 50
    arms: int = 10
    noise: float = 0.9
    name: str = "bandit-one-step"
    prompt_length: int = 1
    answer_length: int = 1

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Numbers, of contexts as of arms, and a token that no answer uses."""
        return (*(str(i) for i in range(max(self.contexts, self.arms))), "$")

    @property
    def end(self) -> int:
        """The last token."""
        return len(self.vocabulary) - 1

    @property
    def states(self) -> int:
        """The contexts."""
        return self.contexts

    @cached_property
    def right(self) -> NDArray[np.int64]:
        """(contexts,) the right arm of each; always the same ones."""
        return np.random.default_rng(0).integers(0, self.arms, self.contexts)

    @cached_property
    def inputs(self) -> Floats:
        """(contexts, 8) a random vector for each, about of length 1; always the same ones."""
        whole: Floats = np.random.default_rng(1).standard_normal((self.contexts, 8)) / np.sqrt(8)
        return whole

    def prompts(self, rng: np.random.Generator, n: int) -> Tokens:
        """Draw n contexts, (n, 1)."""
        return rng.integers(0, self.contexts, (n, 1))

    def demonstrations(self, rng: np.random.Generator, prompts: Tokens) -> Tokens:
        """Pull the right arm, or a random one with probability `noise`."""
        astray = rng.random(len(prompts)) < self.noise
        anything = rng.integers(0, self.arms, len(prompts))
        return np.where(astray, anything, self.right[prompts[:, 0]])[:, None]

    def keep(self, answers: Tokens) -> NDArray[np.bool_]:
        """Every token."""
        return np.ones(answers.shape, np.bool_)

    def reward(self, prompts: Tokens, answers: Tokens) -> Floats:
        """1 for the right arm, else 0."""
        right: Floats = (answers[:, 0] == self.right[prompts[:, 0]]).astype(np.float64)
        return right

    def first_state(self, prompts: Tokens) -> NDArray[np.int64]:
        """The context."""
        return prompts[:, 0]

    def next_state(
        self, prompts: Tokens, position: int, state: NDArray[np.int64], arm: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Stay: there is no next token."""
        return state

    def dynamics(self) -> Dynamics:
        """Uniform contexts, one pull."""
        start = np.full(self.contexts, 1 / self.contexts)
        stay = np.repeat(np.eye(self.contexts)[:, None, :], self.arms, axis=1)
        score = (self.right[:, None] == np.arange(self.arms)).astype(np.float64)
        return Dynamics(start, stay, score, 1)
