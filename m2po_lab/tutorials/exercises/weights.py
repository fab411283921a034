"""Questions of notebook 01."""

import math
from types import MappingProxyType

import numpy as np

from m2po_lab.core import TokenBatch, sums
from m2po_lab.core.moments import ess_fraction, m2
from m2po_lab.tutorials.answers import Exercise, choice, number
from m2po_lab.tutorials.lessons.weights import population, statistics, tilted

BEHAVIOR, CURRENT = 0.5, 0.1
"""Probabilities of the token of the first question."""
RATIOS = (2.0, 0.5, 0.5, 1.0)
"""Weights of the second question."""
WORTH = 0.98
"""ESS/n of one token in the third question."""
NAMES = ("k1", "k3", "ess_fraction", "chi2", "m2")
ON_POLICY = MappingProxyType({"k1": 0.0, "k3": 0.0, "ess_fraction": 1.0, "chi2": 0.0, "m2": 0.0})
GIVEN_UP, TELLING = -8.0, 0.1
"""How far an answer of the last question falls, nats; a change that nobody overlooks."""


def second_moment_of_one_token() -> float:
    """d^2 of the token."""
    batch = TokenBatch(behavior_logp=np.log([[BEHAVIOR]]), current_logp=np.log([[CURRENT]]))
    return float(m2(sums(batch.log_ratio(), batch.keep)))


def worth_of_four() -> float:
    """ESS/n of the four weights."""
    return float(ess_fraction(sums(np.log(RATIOS), np.ones(4, np.bool_))))


def tokens_to_half() -> float:
    """The first length at which the product's ESS/n is below a half."""
    return float(next(n for n in range(1, 1000) if WORTH**n < 0.5))


def telling() -> frozenset[str]:
    """Statistics that move by more than TELLING when one answer in twenty is given up."""
    log_mu = np.log([0.5, 0.3, 0.15, 0.05])
    found = statistics(population(log_mu, tilted(log_mu, 3, GIVEN_UP)), NAMES)
    return frozenset(n for n in NAMES if abs(found[n] - ON_POLICY[n]) > TELLING)


def _token_solution() -> str:
    d = math.log(CURRENT / BEHAVIOR)
    square = second_moment_of_one_token()
    return (
        f"r = {CURRENT} / {BEHAVIOR} = {CURRENT / BEHAVIOR:g}, so d = ln r = {d:.3f} nats and d² ="
        f" {square:.2f} nats². One such token among {square / 0.04:.0f} that did not move brings M2"
        " to 0.04, the budget of M2PO."
    )


def _ess_solution() -> str:
    total, squares = sum(RATIOS), sum(r * r for r in RATIOS)
    return (
        f"The weights add up to {total:g}, their squares to {squares:g}. So ESS/n = {total:g}² / (4"
        f" · {squares:g}) = {worth_of_four():.3f}: four samples are worth about three."
    )


def _length_solution() -> str:
    exact = math.log(0.5) / math.log(WORTH)
    return (
        f"{WORTH}^T = 0.5 at T = ln 0.5 / ln {WORTH} = {exact:.1f}, so from {tokens_to_half():g}"
        " tokens on. Answers of language models have thousands; hence one ratio a token."
    )


def _blind_solution() -> str:
    names = ", ".join(sorted(telling()))
    return (
        f"{names}. The others are made of r and r² only: a token that is given up drops out of"
        " their sums, and they fall by its share, no more."
    )


EXERCISES = MappingProxyType(
    {
        "token": Exercise(
            judge=number(
                second_moment_of_one_token,
                {
                    "That is the ratio r. d is its natural logarithm, and M2 averages d squared.": (
                        lambda: CURRENT / BEHAVIOR
                    ),
                    "That is d. M2 averages d squared.": lambda: math.log(CURRENT / BEHAVIOR),
                    "That is |d|. M2 averages d squared.": lambda: math.log(BEHAVIOR / CURRENT),
                    "Nats: take the natural logarithm, not that to base 10.": (
                        lambda: math.log10(CURRENT / BEHAVIOR) ** 2
                    ),
                },
            ),
            right=second_moment_of_one_token,
            solution=_token_solution,
        ),
        "ess": Exercise(
            judge=number(
                worth_of_four,
                {
                    "That is the number of samples they are worth; ESS/n divides it by n = 4.": (
                        lambda: 4 * worth_of_four()
                    ),
                    "That is the mean weight. ESS also needs the sum of the squares.": (
                        lambda: sum(RATIOS) / 4
                    ),
                    "Upside down: the square of the sum goes on top.": lambda: 1 / worth_of_four(),
                },
            ),
            right=worth_of_four,
            solution=_ess_solution,
        ),
        "length": Exercise(
            judge=number(
                tokens_to_half,
                {
                    "Nearly: an answer has a whole number of tokens.": (
                        lambda: math.log(0.5) / math.log(WORTH)
                    ),
                    "Worth multiplies from token to token; it does not fall by the same amount.": (
                        lambda: 0.5 / (1 - WORTH)
                    ),
                },
                within=0.001,
            ),
            right=tokens_to_half,
            solution=_length_solution,
        ),
        "blind": Exercise(
            judge=choice(
                telling,
                frozenset(NAMES),
                {
                    "m2": "d² of a token that is 8 nats down is 64, in one token of twenty.",
                    "k1": "-d of a token that is 8 nats down is 8, in one token of twenty.",
                    "k3": "For r → 0, e^d - 1 - d is about -d - 1: it grows, if only linearly.",
                    "ess_fraction": "Its sums hold r and r², and both are next to 0 for r → 0.",
                    "chi2": "It averages r², to which a token with r → 0 adds nothing.",
                },
            ),
            right=telling,
            solution=_blind_solution,
        ),
    }
)
"""Name -> exercise."""
