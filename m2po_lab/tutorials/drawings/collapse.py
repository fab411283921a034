"""Pictures of notebook 03."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from m2po_lab.report.palette import BLUE, MUTED, ORANGE, RED
from m2po_lab.tutorials.pictures import Picture, panels
from toy_envs.bandit_sweep import Curves

COLORS = (MUTED, ORANGE, RED, BLUE)
"""Of the four arms, in every picture."""


def arms(found: Mapping[str, Curves], until: int, lag: int) -> Picture:
    """Accuracy and M2 of the arms up to an update; what comes later is not shown yet."""
    figure, (left, right) = panels(2, height=3.4)
    for (name, curves), color in zip(found.items(), COLORS, strict=True):
        seen = curves.updates <= until
        updates, value = curves.updates[seen], curves.value[:, seen]
        left.plot(updates, value.mean(axis=0), color=color, linewidth=2, label=name)
        low, high = value.min(axis=0), value.max(axis=0)
        left.fill_between(updates, low, high, color=color, alpha=0.13, linewidth=0)
        right.plot(updates, np.maximum(curves.m2[:, seen].mean(axis=0), 1e-5), color=color)
    last = int(next(iter(found.values())).updates[-1])
    left.set(title=f"accuracy until update {until}", ylim=(0, 1.02), ylabel="mean and range")
    left.legend(loc="lower right")
    right.set(title="M2 of all tokens, exact", yscale="log", ylim=(1e-4, 20), ylabel="nats²")
    for axes in (left, right):
        axes.set(xlim=(0, last), xlabel="updates")
        _lags(axes, lag, last)
    now = {
        name: float(curves.value[:, curves.updates <= until][:, -1].mean())
        for name, curves in found.items()
    }
    text = ", ".join(f"{name} {value:.2f}" for name, value in now.items())
    return Picture(figure, f"Accuracy at update {until}: {text}.")


def _lags(axes: Axes, lag: int, last: int) -> None:
    for update in range(lag, last, lag):
        axes.axvline(update, color=MUTED, linestyle=":", linewidth=1)


def seeds(curves: Curves, title: str) -> Picture:
    """Accuracy, M2 and gradient norm of every seed of one arm."""
    figure, (value, m2, norm) = panels(3, height=2.9)
    for axes, rows, name in (
        (value, curves.value, f"{title}: accuracy"),
        (m2, curves.m2, "M2, nats²"),
        (norm, curves.gradient_norm, "gradient norm"),
    ):
        axes.plot(curves.updates, rows.T, color=RED, alpha=0.55, linewidth=1.1)
        axes.set(title=name, xlabel="updates")
    value.set_ylim(0, 1.02)
    m2.set_yscale("log")
    norm.set_yscale("log")
    return Picture(figure, f"{title}: each seed falls at a time of its own.")


def compare(found: Mapping[str, Curves], title: str) -> Picture:
    """Accuracy of one setting against another, every seed."""
    figure, (axes,) = panels(height=3.1)
    for (name, curves), color in zip(found.items(), (RED, BLUE, ORANGE), strict=False):
        axes.plot(curves.updates, curves.value.mean(axis=0), color=color, linewidth=2, label=name)
        axes.plot(curves.updates, curves.value.T, color=color, linewidth=0.7, alpha=0.4)
    axes.set(title=title, xlabel="updates", ylabel="accuracy", ylim=(0, 1.02))
    axes.legend(loc="lower right")
    ends = ", ".join(f"{name} {c.value[:, -1].mean():.2f}" for name, c in found.items())
    return Picture(figure, f"{title}. At the end: {ends}.")


def masked(found: Mapping[str, Curves], lag: int) -> Picture:
    """Share of tokens dropped over updates, arms that drop any."""
    figure, (axes,) = panels(height=2.8)
    for (name, curves), color in zip(found.items(), COLORS, strict=True):
        if curves.masked_fraction.any():
            mean = curves.masked_fraction.mean(axis=0)
            axes.plot(curves.updates, mean, color=color, linewidth=1.5, label=name)
    _lags(axes, lag, 640)
    axes.set(title="tokens clipped or masked", xlabel="updates", ylim=(0, None))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.legend()
    return Picture(figure, "M2PO masks as much as the clip before update 256, far less after it.")
