"""Pictures of notebook 04."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import seaborn as sns
from matplotlib.colors import ListedColormap
from matplotlib.ticker import PercentFormatter

from m2po_lab.core import Threshold, TokenBatch, eligible
from m2po_lab.report.palette import BLUE, GREEN, GRID, INK, MUTED, ORANGE, RED
from m2po_lab.tutorials.lessons.m2po import Mask, Stage
from m2po_lab.tutorials.pictures import Picture, panels


def squares(at: Stage) -> Picture:
    """d^2 of the tokens of H, the dropped ones hatched, and the mean of the rest."""
    figure, (axes,) = panels(height=3.2)
    gone = np.arange(len(at.names)) < at.dropped
    axes.bar(at.names, np.where(gone, 0, at.square), color=BLUE, width=0.6)
    axes.bar(
        at.names, np.where(gone, at.square, 0), color="white", edgecolor=RED, hatch="///", width=0.6
    )
    axes.axhline(at.budget, color=GREEN, linewidth=1.5, label=f"budget {at.budget:g}")
    if math.isfinite(at.mean):
        label = f"mean of what is left: {at.mean:.4f}"
        axes.axhline(at.mean, color=INK, linestyle="--", linewidth=1.2, label=label)
    done = at.mean <= at.budget
    title = f"{at.dropped} dropped: " + ("within the budget, stop" if done else "over the budget")
    axes.set(title=title, ylabel="d², nats²", xlabel="tokens of H, the largest d² first")
    axes.legend(loc="upper right")
    return Picture(figure, f"{title}. The mean of what is left is {at.mean:.4f}.")


def bounds(batch: TokenBatch, threshold: Threshold, share: float) -> Picture:
    """Histogram of d in H, M2PO's threshold and the bounds of PPO's clip."""
    figure, (axes,) = panels(height=3.2)
    d = batch.log_ratio()[eligible(batch)]
    edges = np.linspace(-1.5, 1.5, 76)
    counts, _ = np.histogram(d, edges)
    middle = (edges[:-1] + edges[1:]) / 2
    beyond = np.abs(middle) > threshold.log_ratio
    axes.bar(middle, counts, edges[1] - edges[0], color=np.where(beyond, RED, BLUE))
    for side in (-1, 1) if math.isfinite(threshold.log_ratio) else ():
        axes.axvline(side * threshold.log_ratio, color=RED, linestyle="--", linewidth=1.2)
    for place in (math.log(0.8), math.log(1.2)):
        axes.axvline(place, color=ORANGE, linewidth=1.2)
    axes.set(yscale="log", xlabel="d of the tokens of H, nats", ylabel="tokens", ylim=(0.7, None))
    cut = f"|d| > {threshold.log_ratio:.2f}" if threshold.masked else "nothing"
    axes.set_title(f"budget {threshold.budget:g}: masks {cut}, {share:.2%} of all tokens")
    axes.plot([], [], color=RED, linestyle="--", label="M2PO's threshold")
    axes.plot([], [], color=ORANGE, label="PPO's clip, eps 0.2")
    axes.legend(loc="upper right")
    return Picture(figure, f"At budget {threshold.budget:g} M2PO masks {share:.2%} of the tokens.")


def growing(drift: Sequence[float], share: Mapping[str, Sequence[float]], budget: float) -> Picture:
    """Share of tokens dropped while M2 of H grows."""
    figure, (axes,) = panels(height=3.1)
    for (name, values), color in zip(share.items(), (ORANGE, BLUE), strict=True):
        axes.plot(drift, values, color=color, marker="o", markersize=4, label=name)
    axes.axvline(budget, color=GREEN, linewidth=1.5, label=f"budget {budget:g}")
    axes.set(xscale="log", xlabel="M2 of H before any mask, nats²", ylabel="tokens dropped")
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=1))
    axes.legend()
    return Picture(figure, "A clip drops tokens long before M2 is over the budget; M2PO does not.")


def split(counts: Sequence[int], found: Mapping[str, Sequence[float]]) -> Picture:
    """Share of tokens dropped against the number of micro-batches."""
    figure, (axes,) = panels(height=3.1)
    for (name, values), color in zip(found.items(), (BLUE, MUTED, RED), strict=True):
        axes.plot(counts, values, color=color, marker="o", label=name)
    axes.set(xscale="log", xlabel="micro-batches", ylabel="tokens dropped", ylim=(0, None))
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=1))
    axes.legend()
    return Picture(figure, "Masks found in each micro-batch by itself grow with their number.")


def masks(names: Sequence[str], keep: Mapping[str, Mask], inside: Mask) -> Picture:
    """Which tokens each rule keeps (blue) and drops (red); dots mark those outside H."""
    figure, (axes,) = panels(height=0.55 * len(keep) + 1.0)
    grid = np.stack([mask.ravel() for mask in keep.values()]).astype(float)
    colors = ListedColormap([RED, BLUE])
    sns.heatmap(
        grid, cmap=colors, vmin=0, vmax=1, cbar=False, linewidths=3, linecolor="white", ax=axes
    )
    axes.set_xticks(np.arange(len(names)) + 0.5, names, rotation=0)
    axes.set_yticks(np.arange(len(keep)) + 0.5, list(keep), rotation=0)
    for i in np.flatnonzero(~inside.ravel()):
        axes.plot([i + 0.5] * len(keep), np.arange(len(keep)) + 0.5, "o", color=GRID, markersize=5)
    axes.set(title="kept (blue), dropped (red); a dot: not in H", xlabel="", ylabel="")
    axes.tick_params(length=0)
    text = "; ".join(f"{name} drops {int((~mask).sum())}" for name, mask in keep.items())
    return Picture(figure, f"Four rules called M2PO and PPO's clip on the same tokens: {text}.")
