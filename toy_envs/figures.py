"""Plots: results and axes in, axes out; nothing is computed here."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

Results = Mapping[str, Mapping[str, Any]]
"""Arm -> its curves or details."""

COLORS = ("#2767b0", "#c4581c", "#2e7d4f", "#b3303a", "#7350a8", "#68707a", "#0f8b8d", "#a8871f")
NAMED_COLORS = {"ppo_s0": "#68707a", "ppo_s256": "#c4581c", "is_s256": "#b3303a"} | {
    "m2po_s256": "#2767b0"
}
MUTED = "#68707a"
M2_FLOOR = 1e-4
PANELS_A_ROW = 4


def color_of(arm: str, place: int) -> str:
    """The four arms look the same in every figure; others go round the palette."""
    return NAMED_COLORS.get(arm, COLORS[place % len(COLORS)])


def reward(results: Results, axes: Axes, lag: int) -> Axes:
    """Accuracy of fresh answers over updates, mean and range over seeds; lags on top."""
    for place, (arm, curve) in enumerate(results.items()):
        color = color_of(arm, place)
        axes.plot(curve["updates"], curve["reward"], color=color, label=arm, linewidth=1.5)
        axes.fill_between(
            curve["updates"], curve["reward_low"], curve["reward_high"], color=color, alpha=0.15
        )
    axes.set(xlabel="updates", ylabel="accuracy of fresh answers, mean and range", ylim=(0, 1.02))
    top = axes.secondary_xaxis(
        "top", functions=(lambda u: np.asarray(u) / lag, lambda n: np.asarray(n) * lag)
    )
    top.set_xlabel(f"updates in lags of {lag}", color=MUTED)
    axes.legend(loc="lower right")
    return axes


def masked(results: Results, axes: Axes) -> Axes:
    """Share of tokens whose gradient the trust region drops, over updates."""
    for place, (arm, curve) in enumerate(results.items()):
        axes.plot(curve["updates"], curve["masked"], color=color_of(arm, place), linewidth=1.2)
    axes.set(xlabel="updates", ylabel="tokens clipped or masked", ylim=(0, None))
    return axes


def second_moment(results: Results, kept: Results, axes: Axes, budget: float) -> Axes:
    """M2 of active tokens before (solid) and after (dotted) the trust region, and the budget."""
    for place, (arm, curve) in enumerate(results.items()):
        color = color_of(arm, place)
        axes.plot(curve["updates"], _gaps(curve["m2"]), color=color, linewidth=1.2)
        axes.plot(curve["updates"], _gaps(kept[arm]["m2_kept"]), color=color, linestyle=":")
    axes.axhline(budget, color=MUTED, linewidth=0.8)
    axes.set(xlabel="updates", ylabel="M2 of active tokens, nats²", yscale="log")
    # On policy M2 falls to rounding noise, which would squeeze everything else.
    axes.set_ylim(bottom=M2_FLOOR)
    lines = [Line2D([], [], color=MUTED, linestyle=style) for style in ("-", ":")]
    axes.legend(lines, ["before", "after the trust region"], loc="lower right")
    return axes


def entropy(details: Results, axes: Axes) -> Axes:
    """Entropy of the sampling policy against |r - 1| of the token."""
    for place, (arm, detail) in enumerate(details.items()):
        bins = detail["entropy_by_ratio"]
        middle = [(low + high) / 2 for low, high in zip(bins["low"], bins["high"], strict=True)]
        axes.plot(
            middle, _gaps(bins["entropy"]), color=color_of(arm, place), marker="o", markersize=3
        )
    axes.set(xlabel="|r - 1|, r = current/behavior", ylabel="entropy of the sampler, nats")
    axes.set_ylim(0, None)
    return axes


def against_staleness(details: Results, key: str, label: str, axes: Axes) -> Axes:
    """One number a run against staleness; a line joins medians over seeds, points are seeds."""
    lines: dict[str, list[tuple[int, list[float]]]] = {}
    for arm, detail in details.items():
        objective, _, staleness = arm.rpartition("_s")
        lines.setdefault(objective, []).append((int(staleness), detail[key]))
    for number, (objective, points) in enumerate(lines.items()):
        color = color_of(f"{objective}_s256", number)
        places = [staleness for staleness, _ in points]
        middle = [sorted(seeds)[len(seeds) // 2] for _, seeds in points]
        axes.plot(places, middle, color=color, label=objective, marker="o", markersize=4)
        for place, seeds in points:
            axes.plot([place] * len(seeds), seeds, color=color, marker=".", linestyle="")
    axes.set(xlabel="staleness, updates", ylabel=label)
    axes.set_xscale("symlog", base=2, linthresh=8)
    every = sorted({staleness for points in lines.values() for staleness, _ in points})
    axes.set_xticks(every, [str(staleness) for staleness in every], minor=False)
    axes.legend()
    return axes


def bars(details: Results, key: str, label: str, axes: Axes) -> Axes:
    """One number a run for each arm; a bar is the median over seeds, points are seeds."""
    for place, (arm, detail) in enumerate(details.items()):
        seeds = detail[key]
        color = color_of(arm, place)
        axes.barh(arm, sorted(seeds)[len(seeds) // 2], color=color, alpha=0.5)
        axes.plot(seeds, [arm] * len(seeds), color=color, marker=".", linestyle="")
    # The first arm is on top; axes that share their arms are turned once.
    axes.set_ylim(len(details) - 0.4, -0.6)
    axes.set(xlabel=label)
    axes.tick_params(labelsize=8)
    _plain(axes)
    return axes


def arms_figure(results: Results, details: Results, title: str, lag: int, budget: float) -> Figure:
    """The four arms: accuracy, clip fraction, M2 and entropy."""
    figure, axes = _page(2, 2, title)
    reward(results, axes[0], lag)
    masked(results, axes[1])
    second_moment(results, details, axes[2], budget)
    entropy(details, axes[3])
    return figure


def staleness_figure(results: Results, details: Results, title: str, lag: int) -> Figure:
    """Final accuracy and clip fraction against staleness."""
    figure, axes = _page(1, 2, title)
    against_staleness(details, "final", "final accuracy, median and seeds", axes[0])
    against_staleness(details, "masked_after", "tokens clipped or masked after 256", axes[1])
    return figure


def comparison_figure(results: Results, details: Results, title: str, lag: int) -> Figure:
    """A small plot for each arm beside the first one, and where each ended."""
    rows = -(-len(results) // PANELS_A_ROW)
    bar_height = 0.32 * len(results) + 0.9
    height = max(1.9 * rows + 0.5, bar_height)
    figure = Figure(figsize=(14, height), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(3, 2))[0]
    panels = left.subplots(rows, PANELS_A_ROW, sharex=True, sharey=True, squeeze=False).ravel()
    first = next(iter(results))
    left.suptitle(f"{title}; grey: {first}")
    for place, (arm, axes) in enumerate(zip(results, panels, strict=False)):
        shown = dict.fromkeys((first, arm))
        one_arm({name: results[name] for name in shown}, arm, color_of(arm, place), axes, lag)
    for axes in panels[len(results) :]:
        axes.set_visible(False)
    left.supxlabel(f"updates; a tick is a lag of {lag}", fontsize=9)
    left.supylabel("accuracy of fresh answers, mean and range", fontsize=9)
    ends, shares = right.subplots(1, 2, sharey=True)
    bars(details, "final", "final accuracy,\nmedian and seeds", ends)
    bars(details, "masked_after", f"tokens clipped or masked\nafter update {lag}", shares)
    ends.set_xlim(0, 1.02)
    return figure


def one_arm(results: Results, arm: str, color: str, axes: Axes, lag: int) -> Axes:
    """Accuracy of one arm, mean and range over seeds, before others in grey."""
    for other, curve in results.items():
        if other != arm:
            axes.plot(curve["updates"], curve["reward"], color=MUTED, linewidth=0.8, alpha=0.6)
    curve = results[arm]
    axes.plot(curve["updates"], curve["reward"], color=color, linewidth=1.4)
    axes.fill_between(
        curve["updates"], curve["reward_low"], curve["reward_high"], color=color, alpha=0.2
    )
    axes.set_ylim(0, 1.02)
    axes.set_xticks(range(0, int(curve["updates"][-1]) + 1, lag))
    axes.set_title(arm, fontsize=8)
    axes.tick_params(labelsize=7)
    _plain(axes)
    return axes


SWEEP_FIGURES: Mapping[str, Callable[[Results, Results, str, int], Figure]] = {
    "staleness": staleness_figure
}
"""Sweep -> its figure; the others compare their arms with `comparison_figure`."""


def _page(rows: int, columns: int, title: str) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(5.5 * columns, 4.2 * rows), layout="constrained")
    figure.suptitle(title)
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(rows * columns)]
    for one in axes:
        _plain(one)
    return figure, axes


def _plain(axes: Axes) -> None:
    axes.grid(True, color="#dde1e6", linewidth=0.7)
    axes.spines[["right"]].set_visible(False)


def _gaps(values: list[float | None]) -> list[float]:
    """A value that is not there leaves a gap."""
    return [float("nan") if value is None else value for value in values]
