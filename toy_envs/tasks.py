"""Verifiable tasks: prompts, worked demonstrations and an exact reward, as integer tokens."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int64]


class Task(Protocol):
    """A task whose answers can be checked.

    Attributes:
        name: how recipes call it.
        vocabulary: the text of each token; ids are indices.
        prompt_length: tokens of every prompt.
        answer_length: tokens of every answer.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def vocabulary(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def prompt_length(self) -> int: ...  # noqa: D102
    @property
    def answer_length(self) -> int: ...  # noqa: D102

    def prompts(self, rng: np.random.Generator, n: int) -> Tokens:
        """Draw n prompts, (n, prompt_length)."""
        ...

    def demonstrations(self, rng: np.random.Generator, prompts: Tokens) -> Tokens:
        """Answer the prompts as the noisy teacher of the warm start does, (n, answer_length)."""
        ...

    def keep(self, answers: Tokens) -> NDArray[np.bool_]:
        """Mark the tokens of the answers, (n, answer_length); False behind an end token."""
        ...

    def reward(self, prompts: Tokens, answers: Tokens) -> NDArray[np.float64]:
        """Score the answers, (n,) in [0, 1]."""
        ...


@dataclass(frozen=True)
class RunningSum:
    """Repeat each digit and write the running sum modulo 10 behind it: 4 7 = 4 4 7 1.

    The reward is 1 if the whole chain is right. The teacher replaces each sum by a random digit
    with probability `noise` and goes on from it, so a warm-started model knows the algorithm and
    is unsure of its sums: reinforcement learning sharpens it rather than discovers something.

    Attributes:
        digits: how many digits a prompt has.
        noise: probability that the teacher writes a random sum.
    """

    digits: int = 5
    noise: float = 0.4
    name: str = "running-sum"
    vocabulary: tuple[str, ...] = (*"0123456789", "=", "$")

    @property
    def prompt_length(self) -> int:
        """The digits and the equals sign."""
        return self.digits + 1

    @property
    def answer_length(self) -> int:
        """Each digit and its running sum."""
        return 2 * self.digits

    def prompts(self, rng: np.random.Generator, n: int) -> Tokens:
        """Draw n prompts of random digits."""
        digits = rng.integers(0, 10, (n, self.digits))
        return np.concatenate([digits, np.full((n, 1), 10)], axis=1)

    def demonstrations(self, rng: np.random.Generator, prompts: Tokens) -> Tokens:
        """Write chains whose sums go astray with probability `noise`."""
        digits = prompts[:, : self.digits]
        answers = np.empty((len(prompts), self.answer_length), dtype=np.int64)
        total = np.zeros(len(prompts), dtype=np.int64)
        for i in range(self.digits):
            astray = rng.random(len(prompts)) < self.noise
            total = np.where(astray, rng.integers(0, 10, len(prompts)), (total + digits[:, i]) % 10)
            answers[:, 2 * i], answers[:, 2 * i + 1] = digits[:, i], total
        return answers

    def keep(self, answers: Tokens) -> NDArray[np.bool_]:
        """Every token: all answers are of one length."""
        return np.ones(answers.shape, np.bool_)

    def reward(self, prompts: Tokens, answers: Tokens) -> NDArray[np.float64]:
        """1 where the whole chain is right, else 0."""
        digits = prompts[:, : self.digits]
        right = np.empty((len(prompts), self.answer_length), dtype=np.int64)
        right[:, 0::2], right[:, 1::2] = digits, np.cumsum(digits, axis=1) % 10
        scores: NDArray[np.float64] = (answers == right).all(axis=1).astype(np.float64)
        return scores
