"""Pictures of notebook 02."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from m2po_lab.report.palette import BLUE, GREEN, INK, MUTED, ORANGE, RED
from m2po_lab.tutorials.lessons.clipping import Dropped, Logged
from m2po_lab.tutorials.pictures import COLORS, Picture, panels
from toy_envs.bandit_sweep import Curves

Floats = NDArray[np.float64]


def clip(ratios: Floats, positive: Floats, negative: Floats, eps: float) -> Picture:
    """Gradient weight against r for both signs of the advantage."""
    figure, both = panels(2, height=2.8)
    shown = (("A > 0", positive, 1 + eps, GREEN), ("A < 0", negative, 1 - eps, RED))
    for axes, (title, weight, bound, color) in zip(both, shown, strict=True):
        axes.plot(ratios, ratios, color=MUTED, linestyle=":", label="no trust region")
        axes.plot(ratios, weight, color=color, linewidth=2, label=f"clip, eps {eps:g}")
        axes.axvline(bound, color=ORANGE, linewidth=1)
        axes.set(title=title, xlabel="r", ylabel="weight of A in the gradient")
        axes.legend(loc="upper left")
    return Picture(figure, "Past its bound a token has no gradient at all, on one side only.")


def learning(run: Logged, updates_per_step: int = 4) -> Picture:
    """Accuracy and clipped share over updates of one run."""
    figure, (left, right) = panels(2, height=2.8)
    updates = updates_per_step * np.arange(len(run.reward))
    left.plot(updates, run.reward, color=ORANGE)
    left.set(title="accuracy of fresh answers", xlabel="updates", ylim=(0, 1.02))
    right.plot(updates, run.masked, color=ORANGE)
    right.set(title="tokens clipped", xlabel="updates", ylim=(0, None))
    right.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return Picture(figure, "Accuracy rises late; a tenth of the tokens is clipped on the way.")


def entropy(run: Logged, found: Dropped) -> Picture:
    """Entropy against |r - 1| with the clip's width, and what it drops against what it keeps."""
    figure, (left, right) = panels(2, height=3.1)
    bins = run.entropy_by_ratio
    low, high = np.array(bins["low"]), np.array(bins["high"])
    values = np.array([np.nan if v is None else v for v in bins["entropy"]])
    outside = low >= found.eps - 1e-9
    left.bar(low, values, high - low, align="edge", color=np.where(outside, RED, BLUE), alpha=0.85)
    left.axvline(found.eps, color=ORANGE, linewidth=1.5)
    left.set(title="entropy of the sampler", xlabel="|r - 1|", ylabel="nats")
    names = ("dropped", "kept")
    right.bar(names, [found.entropy_dropped, found.entropy_kept], color=[RED, BLUE], width=0.5)
    title = f"eps {found.eps:g} drops {found.share:.1%} of the tokens"
    right.set(title=title, ylabel="mean entropy, nats", ylim=(0, 1.4))
    says = f"{title}; their entropy is {found.entropy_dropped:.2f}, of the others"
    return Picture(figure, f"{says} {found.entropy_kept:.2f} nats.")


def accuracy(curves: Mapping[str, Curves], mark: float, title: str) -> Picture:
    """Exact accuracy over updates, mean and range over seeds, a line a setting."""
    figure, (axes,) = panels(height=3.3)
    for (name, found), color in zip(curves.items(), cycle(COLORS)):
        axes.plot(found.updates, found.value.mean(axis=0), color=color, label=name)
        low, high = found.value.min(axis=0), found.value.max(axis=0)
        axes.fill_between(found.updates, low, high, color=color, alpha=0.15, linewidth=0)
    axes.axhline(mark, color=INK, linestyle=":", linewidth=1)
    axes.set(title=title, xlabel="updates", ylabel="accuracy", ylim=(0, 1.02))
    axes.legend(loc="lower right")
    return Picture(figure, f"Accuracy over updates: {', '.join(curves)}.")


def share_by_kind(rows: Sequence[Dropped]) -> Picture:
    """Share of copies and of sums that clips of several widths drop."""
    figure, (axes,) = panels(height=2.9)
    place = np.arange(len(rows))
    axes.bar(place - 0.2, [r.of_copies for r in rows], 0.38, color=MUTED, label="copies of a digit")
    axes.bar(place + 0.2, [r.of_sums for r in rows], 0.38, color=RED, label="sums, to be learned")
    axes.set_xticks(place, [f"eps {r.eps:g}" for r in rows])
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set(title="tokens dropped, by kind", ylabel="of their kind")
    axes.legend()
    return Picture(figure, "Clips of every width drop sums and hardly any copies.")
