"""Questions of notebook 03."""

from types import MappingProxyType

import numpy as np

from m2po_lab.tutorials.answers import Exercise, choice, number
from m2po_lab.tutorials.lessons.collapse import (
    FALLEN,
    LAG,
    SEEDS,
    fallen,
    masked_late,
    peak,
    trained,
)

EARLIER, LATER = 256, 320
"""Updates between which the last question compares M2."""


def dips() -> float:
    """Seeds that fall without a trust region."""
    return float(fallen(trained("is", LAG)))


def ratio() -> float:
    """What M2PO masks late, over what the clip does."""
    return masked_late(trained("m2po", LAG)) / masked_late(trained("ppo", LAG))


def direction() -> frozenset[str]:
    """How M2 without a trust region changes while the accuracy falls."""
    curves = trained("is", LAG)
    before, after = (
        float(curves.m2[:, curves.updates == update].mean()) for update in (EARLIER, LATER)
    )
    return frozenset(["falls" if after < before else "rises"])


def _dips_solution() -> str:
    return (
        f"{dips():.0f} of {len(SEEDS)}:\n\n```python\n"
        "value = found['no trust region, stale'].value\n"
        f"above = value >= {FALLEN}\n"
        "sum((above[k].argmax() < np.flatnonzero(~above[k])).any() for k in range(len(value)))\n"
        "```"
    )


def _ratio_solution() -> str:
    return (
        f"{masked_late(trained('m2po', LAG)):.3f} / {masked_late(trained('ppo', LAG)):.3f} ="
        f" {ratio():.2f}. Before update {LAG} the two mask about alike."
    )


def _direction_solution() -> str:
    curves = trained("is", LAG)
    m2 = {u: float(curves.m2[:, curves.updates == u].mean()) for u in (EARLIER, LATER)}
    value = {u: float(curves.value[:, curves.updates == u].mean()) for u in (EARLIER, LATER)}
    (word,) = direction()
    return (
        f"It {word}, from {m2[EARLIER]:.1f} to {m2[LATER]:.1f}, while the accuracy goes from"
        f" {value[EARLIER]:.2f} to {value[LATER]:.2f} (highest: {peak(curves):.2f}). At update"
        f" {LAG} the queue begins to deliver rollouts sampled during training, which are nearer to"
        " the policy."
    )


EXERCISES = MappingProxyType(
    {
        "dips": Exercise(
            judge=number(
                dips,
                {"Count those that were above first: all start below.": lambda: 0.0},
                within=1e-9,
            ),
            right=dips,
            solution=_dips_solution,
        ),
        "ratio": Exercise(
            judge=number(
                ratio,
                {
                    "Upside down: M2PO over the clip.": lambda: 1 / ratio(),
                    "That is over the whole run; look from update 256 on.": lambda: float(
                        np.mean(trained("m2po", LAG).masked_fraction)
                        / np.mean(trained("ppo", LAG).masked_fraction)
                    ),
                },
                within=0.1,
            ),
            right=ratio,
            solution=_ratio_solution,
        ),
        "alarm": Exercise(
            judge=choice(
                direction,
                frozenset(("rises", "falls")),
                dict.fromkeys(("rises", "falls"), "Look at the red curve on the right."),
            ),
            right=lambda: next(iter(direction())),
            solution=_direction_solution,
        ),
    }
)
"""Name -> exercise."""
