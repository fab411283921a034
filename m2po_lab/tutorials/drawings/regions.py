"""Pictures of notebook 05."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np
import seaborn as sns
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from m2po_lab.core import TokenBatch
from m2po_lab.report.palette import BLUE, GREEN, GRID, MUTED, ORANGE, RED
from m2po_lab.tutorials.lessons.regions import Exact, Judged
from m2po_lab.tutorials.pictures import COLORS, Picture, panels

Floats = NDArray[np.float64]
SHOWN_TOKENS = 160


def profiles(
    ratios: Floats, weights: Mapping[str, tuple[Floats, Floats]], columns: int = 4
) -> Picture:
    """Weight against r, one small panel an objective, for both signs of A."""
    rows = -(-len(weights) // columns)
    figure, axes = panels(columns, rows, height=1.9)
    for one, (name, (positive, negative)) in zip(axes, weights.items(), strict=False):
        one.plot(ratios, ratios, color=MUTED, linestyle=":", linewidth=1)
        one.plot(ratios, positive, color=GREEN, linewidth=2, label="A > 0")
        one.plot(ratios, negative, color=RED, linewidth=2, linestyle="--", label="A < 0")
        one.set(title=name, ylim=(-0.1, 3.1), xlim=(0, 3))
    for one in axes[len(weights) :]:
        one.set_visible(False)
    axes[0].legend(loc="upper left")
    for one in axes[-columns:]:
        one.set_xlabel("r")
    says = f"Weight in the gradient against the ratio for {', '.join(weights)}."
    return Picture(figure, says)


def matrix(batch: TokenBatch, judged: Sequence[Judged]) -> Picture:
    """Every objective's weight on the same tokens, sorted by how far they have been pushed."""
    advantage = np.asarray(batch.advantage).ravel()
    pushed = (np.sign(advantage) * np.asarray(batch.log_ratio()).ravel())[advantage != 0]
    order = np.argsort(pushed, kind="stable")
    order = order[np.linspace(0, len(order) - 1, SHOWN_TOKENS).astype(int)]
    grid = np.stack([one.weight.ravel()[advantage != 0][order] for one in judged])
    figure, (axes,) = panels(height=0.28 * len(judged) + 1.2, wide=True)
    colors = LinearSegmentedColormap.from_list("weights", [GRID, "#9fc0e6", BLUE, "#0d2a52"])
    sns.heatmap(grid, cmap=colors, vmin=0, vmax=2, ax=axes, cbar_kws={"label": "weight w"})
    axes.set_yticks(np.arange(len(judged)) + 0.5, [one.name for one in judged], rotation=0)
    zero = float(np.searchsorted(pushed[order], 0))
    axes.axvline(zero, color=ORANGE, linewidth=1.2)
    places = [0, zero, SHOWN_TOKENS - 1]
    names = [f"{pushed[order][0]:+.1f}", "0", f"{pushed[order][-1]:+.1f}"]
    axes.set_xticks(places, names, rotation=0)
    axes.set(xlabel="d in the direction of A, nats: on the way back | pushed further", ylabel="")
    axes.tick_params(length=0)
    return Picture(figure, "Weights of all objectives on the same tokens; grey is no gradient.")


def ranking(judged: Sequence[Judged], title: str) -> Picture:
    """Share of tokens dropped and of gradient mass kept, a bar an objective."""
    figure, (left, right) = panels(2, height=0.24 * len(judged) + 1.0)
    families = list(dict.fromkeys(one.family for one in judged))
    names = [one.name for one in judged]
    colors = [COLORS[families.index(one.family)] for one in judged]
    left.barh(names, [one.dropped for one in judged], color=colors)
    left.set(title=f"{title}: tokens dropped", xlim=(0, 1))
    right.barh(names, [one.mass for one in judged], color=colors)
    right.axvline(1, color=MUTED, linewidth=1)
    right.set(title="gradient mass kept", xlim=(0, 1.25))
    right.tick_params(labelleft=False)
    for axes in (left, right):
        axes.invert_yaxis()
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.grid(visible=False, axis="y")
    for family in families:
        right.plot([], [], "s", color=COLORS[families.index(family)], label=family)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    most = max(judged, key=lambda one: one.dropped)
    return Picture(figure, f"{title}: {most.name} drops most, {most.dropped:.0%} of the tokens.")


def trade_off(found: Mapping[str, Exact]) -> Picture:
    """Exact bias and spread against lag."""
    figure, (left, right) = panels(2, height=3.2)
    for (name, one), color in zip(found.items(), cycle(COLORS)):
        left.plot(one.lags, one.bias, color=color, marker="o", markersize=4, label=name)
        right.plot(one.lags, one.spread, color=color, marker="o", markersize=4)
    left.set(title="bias of the gradient", xlabel="lag, updates", ylabel="of its length")
    right.set(title="spread of one answer's gradient", xlabel="lag, updates", ylim=(0, None))
    left.legend(loc="upper left")
    return Picture(figure, "Clips and masks trade bias for spread; the bias jumps where they bind.")
