"""Questions of notebook 02."""

from functools import cache
from types import MappingProxyType

import numpy as np

from m2po_lab.core import TokenBatch, objective
from m2po_lab.tutorials.answers import Exercise, choice, number
from m2po_lab.tutorials.lessons.clipping import gradient_weight, starts, trained, updates_to

TOKENS = MappingProxyType(
    {"a": (1.0, 1.3), "b": (1.0, 0.5), "c": (-1.0, 0.7), "d": (-1.0, 1.9), "e": (1.0, 1.19)}
)
"""Token -> (A, r)."""
LARGE = 10.0
"""Ratio of the token of the second question, whose A is below 0."""
STALENESS, SEEDS = 64, range(3)
"""Of the run that the last question foretells."""


def clipped() -> frozenset[str]:
    """Tokens without a gradient under a clip of 0.2."""
    advantage, ratio = np.array(list(TOKENS.values())).T
    batch = TokenBatch(
        behavior_logp=np.zeros((len(TOKENS), 1)),
        current_logp=np.log(ratio)[:, None],
        advantage=advantage,
    )
    keep = objective("ppo").keep(batch)[:, 0]
    return frozenset(name for name, stays in zip(TOKENS, keep, strict=True) if not stays)


def weight(name: str = "ppo") -> float:
    """Weight of the token of the second question."""
    return float(gradient_weight(np.array([LARGE]), -1.0, name)[0])


@cache
def updates_at(staleness: int) -> float:
    """Updates until PPO on rollouts of this staleness has learned most of it."""
    return updates_to(trained(starts(SEEDS), "ppo", staleness))


def delay() -> float:
    """The same at the staleness of the last question."""
    return updates_at(STALENESS)


def _clipped_solution() -> str:
    return (
        f"{', '.join(sorted(clipped()))}. The clip binds where the token has already moved the way"
        " its advantage pushes: A > 0 above 1.2, A < 0 below 0.8. b and d are on their way back,"
        " and e is within the bound."
    )


def _weight_solution() -> str:
    return (
        f"{weight():g}: the full ratio. For A < 0 the clip acts below 1 - eps only, so a bad token"
        f" that became ten times likelier gets ten times the push. The dual clip drops it:"
        f" {weight('dual_clip'):g}."
    )


def _delay_solution() -> str:
    fresh = updates_at(0)
    return (
        f"{delay():.0f} updates: {fresh:.0f} on fresh rollouts, and {delay() - fresh:.0f} more,"
        f" about the {STALENESS} updates by which they are late. A clipped policy waits for its"
        " data."
    )


EXERCISES = MappingProxyType(
    {
        "binds": Exercise(
            judge=choice(
                clipped,
                frozenset(TOKENS),
                {
                    "b": "A > 0 and r < 1: the policy has moved the wrong way; nothing stops it.",
                    "d": "A < 0 and r > 1: the policy has moved the wrong way; nothing stops it.",
                    "e": "1.19 is within 1 + 0.2.",
                    "c": "A < 0 below 1 - 0.2: pushed down far enough.",
                },
            ),
            right=clipped,
            solution=_clipped_solution,
        ),
        "weight": Exercise(
            judge=number(
                weight,
                {
                    "For A < 0 the clip acts below 1 - eps, not above 1 + eps.": lambda: 0.0,
                    "The gradient is not that of the bound: inside it is r A.": lambda: 1.2,
                    "That would be the dual clip's bound; PPO has none there.": lambda: 3.0,
                },
            ),
            right=weight,
            solution=_weight_solution,
        ),
        "delay": Exercise(judge=number(delay, within=0.2), right=delay, solution=_delay_solution),
    }
)
"""Name -> exercise."""
