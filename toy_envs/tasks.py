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
        end: id of the token that ends an answer and pads it.
        prompt_length: tokens of every prompt.
        answer_length: tokens of the longest answer.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def vocabulary(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def end(self) -> int: ...  # noqa: D102
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
    def end(self) -> int:
        """The last token; answers have a fixed length and do without it."""
        return len(self.vocabulary) - 1

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
        answers[:, 0::2], answers[:, 1::2] = digits, noisy_sums(rng, digits, self.noise)
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


@dataclass(frozen=True)
class Forks:
    """Behind each digit: a letter of one's own choice, the running sum, the same letter again.

    Three kinds of token stand side by side. The letter is a fork: any of 16 will do, its entropy is
    log 16 and no reward need change it. The sum is what is learned. The copy is certain from the
    start. The reward is 1 if all sums and copies are right.

    Attributes:
        digits: how many digits a prompt has.
        noise: probability that the teacher writes a random sum; it goes on from it.
    """

    digits: int = 4
    noise: float = 0.4
    name: str = "forks"
    vocabulary: tuple[str, ...] = (*"0123456789", "=", *"abcdefghijklmnop", "$")

    @property
    def end(self) -> int:
        """The last token; answers have a fixed length and do without it."""
        return len(self.vocabulary) - 1

    @property
    def prompt_length(self) -> int:
        """The digits and the equals sign."""
        return self.digits + 1

    @property
    def answer_length(self) -> int:
        """Letter, sum, letter for each digit."""
        return 3 * self.digits

    def prompts(self, rng: np.random.Generator, n: int) -> Tokens:
        """Draw n prompts of random digits."""
        digits = rng.integers(0, 10, (n, self.digits))
        return np.concatenate([digits, np.full((n, 1), 10)], axis=1)

    def demonstrations(self, rng: np.random.Generator, prompts: Tokens) -> Tokens:
        """Write chains with uniform letters, whose sums go astray with probability `noise`."""
        letters = rng.integers(FIRST_LETTER, self.end, (len(prompts), self.digits))
        answers = np.empty((len(prompts), self.answer_length), dtype=np.int64)
        answers[:, 0::3] = answers[:, 2::3] = letters
        answers[:, 1::3] = noisy_sums(rng, prompts[:, : self.digits], self.noise)
        return answers

    def keep(self, answers: Tokens) -> NDArray[np.bool_]:
        """Every token: all answers are of one length."""
        return np.ones(answers.shape, np.bool_)

    def reward(self, prompts: Tokens, answers: Tokens) -> NDArray[np.float64]:
        """1 where every fork holds a letter, every copy repeats it and every sum is right."""
        fork, total, copy = answers[:, 0::3], answers[:, 1::3], answers[:, 2::3]
        letter = (fork >= FIRST_LETTER) & (fork < self.end)
        sums = np.cumsum(prompts[:, : self.digits], axis=1) % 10
        right = letter & (fork == copy) & (total == sums)
        scores: NDArray[np.float64] = right.all(axis=1).astype(np.float64)
        return scores


FIRST_LETTER = 11
"""Id of the first letter of `Forks`."""


def noisy_sums(rng: np.random.Generator, digits: Tokens, noise: float) -> Tokens:
    """Add up digits (n, k) modulo 10; each sum is random with probability `noise` and goes on."""
    sums = np.empty_like(digits)
    total = np.zeros(len(digits), dtype=np.int64)
    for i in range(digits.shape[1]):
        astray = rng.random(len(digits)) < noise
        total = np.where(astray, rng.integers(0, 10, len(digits)), (total + digits[:, i]) % 10)
        sums[:, i] = total
    return sums
