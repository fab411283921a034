"""Questions of notebook 05."""

import math
from functools import cache
from types import MappingProxyType

import numpy as np

from m2po_lab.core import TokenBatch, sequence_log_ratio
from m2po_lab.tutorials.answers import Exercise, choice, number
from m2po_lab.tutorials.lessons.clipping import gradient_weight
from m2po_lab.tutorials.lessons.regions import judge, stale_batch

ASKED = ("ppo", "dapo", "cispo", "topr", "sapo", "gspo", "icepop", "m2po")
"""Objectives of the question who never drops a token."""
ROW = (0.3, -0.1, 0.1)
"""Log-ratios of the answer of the second question."""
SHOWN = "topr"
"""The objective whose weights the last question shows."""
PLACES = (0.5, 1.0, 2.0)
"""Ratios at which it shows them."""


@cache
def never() -> frozenset[str]:
    """Objectives that leave every token of a very stale batch its gradient."""
    return frozenset(one.name for one in judge(stale_batch(256), ASKED) if not one.gone.any())


def geometric() -> float:
    """Geometric-mean ratio of the answer."""
    d = np.array([ROW])
    batch = TokenBatch(behavior_logp=np.zeros_like(d), current_logp=d)
    return math.exp(float(sequence_log_ratio(batch, kind="geometric")[0][0]))


def shown_weights() -> dict[str, list[float]]:
    """Sign of A -> weights at PLACES of the objective to be named."""
    return {
        label: gradient_weight(np.array(PLACES), sign, SHOWN).round(3).tolist()
        for label, sign in (("A > 0", 1.0), ("A < 0", -1.0))
    }


def _never_solution() -> str:
    return (
        f"{', '.join(sorted(never()))}. They make weights smaller or bounded, and never 0. The"
        " others have an edge past which a token, or a whole answer, does not count."
    )


def _geometric_solution() -> str:
    return (
        f"exp(({' + '.join(f'{d:g}' for d in ROW)}) / 3) = {geometric():.3f}. The product is"
        f" {math.exp(sum(ROW)):.3f}; a threshold for one says nothing about the other."
    )


def _shown_solution() -> str:
    weights = shown_weights()
    return (
        f"`{SHOWN}`: 1 for good answers ({weights['A > 0']}), and min(r, 1) for bad ones"
        f" ({weights['A < 0']}): what is already given up is not pushed any further."
    )


EXERCISES = MappingProxyType(
    {
        "never": Exercise(
            judge=choice(
                never,
                frozenset(ASKED),
                {
                    "ppo": "Grey in the picture is no gradient.",
                    "icepop": "It bounds b on both sides and drops what is outside.",
                    "gspo": "It drops whole answers.",
                    "m2po": "A mask is a mask, even if it takes few tokens.",
                    "sapo": "Its weight falls towards 0 but never is 0.",
                },
            ),
            right=never,
            solution=_never_solution,
        ),
        "geometric": Exercise(
            judge=number(
                geometric,
                {
                    "That is the product of the ratios; GSPO takes the T-th root.": (
                        lambda: math.exp(sum(ROW))
                    ),
                    "That is the arithmetic mean of the ratios; average d instead.": (
                        lambda: float(np.exp(ROW).mean())
                    ),
                    "That is the mean of d; exponentiate it.": lambda: float(np.mean(ROW)),
                },
                within=0.002,
            ),
            right=geometric,
            solution=_geometric_solution,
        ),
        "profile": Exercise(
            judge=choice(
                lambda: frozenset([SHOWN]),
                frozenset(ASKED),
                dict.fromkeys(ASKED, "Compare with the small panels, at r = 0.5 and at r = 2."),
            ),
            right=lambda: SHOWN,
            solution=_shown_solution,
        ),
    }
)
"""Name -> exercise."""
