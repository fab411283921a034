"""Sums of fractions, checked by math-verify: 11/15 and 22/30 are the same answer."""

import logging
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toy_envs.tasks import Tokens


@dataclass(frozen=True)
class FractionSums:
    r"""Add two fractions by way of the common denominator: 1/3+2/5= 5+6=\boxed{11/15}.

    Numerators are 1 to 9, denominators 2 to 9. The reward is 1 if the boxed answer equals the sum,
    reduced or not, whatever stands before it; math-verify decides. Answers differ in length. The
    teacher replaces each of the four numbers by one near it with probability `noise` and goes on.

    Attributes:
        noise: probability that a number of the teacher goes astray.
    """

    noise: float = 0.2
    name: str = "fractions"
    vocabulary: tuple[str, ...] = (*"0123456789", "+", "/", "=", r"\boxed{", "}", "$")

    @property
    def end(self) -> int:
        """The last token ends an answer."""
        return len(self.vocabulary) - 1

    @property
    def prompt_length(self) -> int:
        """Two fractions, plus and equals."""
        return 8

    @property
    def answer_length(self) -> int:
        r"""Of the longest answer, such as 72+72=\boxed{144/81}$."""
        return 15

    def prompts(self, rng: np.random.Generator, n: int) -> Tokens:
        """Draw n pairs of fractions."""
        top, bottom = rng.integers(1, 10, (n, 2)), rng.integers(2, 10, (n, 2))
        prompts = np.empty((n, 8), dtype=np.int64)
        prompts[:, [0, 4]], prompts[:, [2, 6]] = top, bottom
        prompts[:, [1, 3, 5, 7]] = [self.vocabulary.index(sign) for sign in "/+/="]
        return prompts

    def demonstrations(self, rng: np.random.Generator, prompts: Tokens) -> Tokens:
        """Write worked answers whose numbers go astray with probability `noise`."""
        answers = np.full((len(prompts), self.answer_length), self.end, dtype=np.int64)
        a, b, c, d = prompts[:, [0, 2, 4, 6]].T
        left, right, below = (self._astray(rng, value) for value in (a * d, c * b, b * d))
        above = self._astray(rng, left + right)
        for row, (x, z, n, m) in enumerate(zip(left, right, above, below, strict=True)):
            text = [*str(x), "+", *str(z), "=", r"\boxed{", *str(n), "/", *str(m), "}"]
            answers[row, : len(text)] = [self.vocabulary.index(token) for token in text]
        return answers

    def keep(self, answers: Tokens) -> NDArray[np.bool_]:
        """Everything up to the end token, and that."""
        ends = answers == self.end
        before: NDArray[np.bool_] = np.cumsum(ends, axis=1) - ends == 0
        return before

    def reward(self, prompts: Tokens, answers: Tokens) -> NDArray[np.float64]:
        """1 where math-verify finds a boxed number that equals the sum."""
        keep = self.keep(answers)
        a, b, c, d = prompts[:, [0, 2, 4, 6]].T
        scores = [
            same_number(str(Fraction(int(x), int(y))), self._text(answer[kept]))
            for x, y, answer, kept in zip(a * d + c * b, b * d, answers, keep, strict=True)
        ]
        return np.array(scores, dtype=np.float64)

    def _text(self, answer: Tokens) -> str:
        return "".join(self.vocabulary[token] for token in answer if token != self.end)

    def _astray(self, rng: np.random.Generator, numbers: Tokens) -> Tokens:
        """Replace some numbers by a positive one at most 3 away."""
        near = np.maximum(1, numbers + rng.integers(-3, 4, len(numbers)))
        return np.where(rng.random(len(numbers)) < self.noise, near, numbers)


def same_number(expected: str, answer: str) -> bool:
    r"""Whether the last \boxed{} of an answer holds this number, by math-verify.

    Args:
        expected: a fraction such as 22/30.
        answer: text with or without a box; without one it is wrong.
    """
    _, box, inside = answer.rpartition(r"\boxed{")
    return bool(box) and _verified(expected, box + inside)


@lru_cache(maxsize=1 << 18)
def _verified(expected: str, boxed: str) -> bool:
    from math_verify import verify

    gold = _parsed(rf"\boxed{{{expected}}}")
    return bool(verify(list(gold), list(_parsed(boxed)), timeout_seconds=None))


@lru_cache(maxsize=1 << 16)
def _parsed(boxed: str) -> tuple[Any, ...]:
    """Parse once: it takes milliseconds, and a policy repeats itself."""
    # Imported here: sympy takes a second, and only this task needs it.
    from math_verify import LatexExtractionConfig, parse

    # No time limits: they are alarms of the main thread, and fifteen characters need none. The
    # warning that says so would come with every process.
    for name in ("math_verify.parser", "math_verify.grader"):
        logging.getLogger(name).setLevel(logging.ERROR)
    config = [LatexExtractionConfig(boxed_match_priority=0)]
    return tuple(parse(boxed, config, fallback_mode="no_fallback", parsing_timeout=None))
