"""Pictures of notebook 06."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from m2po_lab.report.palette import BLUE, GREEN, MUTED, ORANGE, RED, VIOLET
from m2po_lab.tutorials.lessons.reallog import Token
from m2po_lab.tutorials.pictures import Picture, panels

Floats = NDArray[np.float64]
NAMED = 0.4
"""From this |d| on a token is named in the picture, nats."""


def collapse(curves: Mapping[str, Floats]) -> Picture:
    """Reward and ESS beside M2, by step."""
    figure, (left, right) = panels(2, height=3.0)
    step, logged = curves["step"], np.isfinite(curves["reward"])
    left.plot(step, curves["ess_fraction"], color=MUTED, linewidth=2, label="ESS/n")
    reward = curves["reward"][logged]
    left.plot(step[logged], reward, color=VIOLET, marker="o", label="reward of a fresh batch")
    left.set(title="what one sees", xlabel="step", ylim=(-0.03, 1.05))
    left.legend(loc="lower left")
    right.plot(step, curves["m2"], color=BLUE, marker="o", label="M2")
    right.axhline(0.04, color=GREEN, linewidth=1.5, label="budget of M2PO, 0.04")
    right.set(title="what happened to the tokens", xlabel="step", ylabel="M2, nats²", yscale="log")
    right.legend(loc="lower right")
    for axes in (left, right):
        _batches(axes)
    return Picture(figure, "The reward falls to 0 while ESS stays high; M2 jumps two steps in.")


def _batches(axes: Axes) -> None:
    """Shade every other rollout batch: four steps train on one."""
    for start in (3.5, 11.5):
        axes.axvspan(start, start + 4, color=MUTED, alpha=0.08, linewidth=0)


def step(tokens: Sequence[Token], number: int) -> Picture:
    """Every token of one step by its d, those that moved far with their text."""
    figure, (axes,) = panels(height=4.0)
    shown = [token for token in tokens if token.step == number]
    kinds = (("A > 0", GREEN, 1), ("A < 0", RED, -1), ("A = 0", MUTED, 0))
    for label, color, sign in kinds:
        part = [i for i, token in enumerate(shown) if np.sign(token.advantage) == sign]
        axes.plot(part, [shown[i].log_ratio for i in part], "o", color=color, label=label)
    for i, token in enumerate(shown):
        if abs(token.log_ratio) > NAMED:
            text = f"“{token.text.strip()}”"
            axes.annotate(text, (i, token.log_ratio), (6, -3), textcoords="offset points", size=9)
    for question, places in groupby(range(len(shown)), key=lambda i: shown[i].question):
        first, *_, last = places
        axes.text((first + last) / 2, -20, question, ha="center", color=MUTED, size=9)
        axes.axvline(last + 0.5, color=MUTED, linewidth=0.7)
    for place in (math.log(0.8), math.log(1.2)):
        axes.axhline(place, color=ORANGE, linewidth=1)
    axes.set_yscale("symlog", linthresh=0.3, linscale=0.5)
    axes.set(
        title=f"step {number}",
        xlabel="tokens of the step, question by question",
        ylabel="d, nats",
        ylim=(-30, 4),
    )
    axes.set_yticks([-10, -3, -1, -0.3, 0, 0.3, 1], ["-10", "-3", "-1", "-0.3", "0", "0.3", "1"])
    axes.set_xlim(-1, len(shown))
    axes.legend(loc="upper right", ncols=3)
    far = sum(abs(token.log_ratio) > NAMED for token in shown)
    return Picture(figure, f"Step {number}: {far} of {len(shown)} tokens moved far.")
