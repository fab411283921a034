"""Pictures of notebook 01."""

from collections.abc import Mapping, Sequence

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from m2po_lab.exactness import Step
from m2po_lab.report.palette import BLUE, INK, MUTED, ORANGE, RED
from m2po_lab.tutorials.lessons.weights import Estimates
from m2po_lab.tutorials.pictures import Picture, panels

Floats = NDArray[np.float64]


def two_policies(log_mu: Floats, log_pi: Floats) -> Picture:
    """Probabilities under both policies, and the weight of each answer."""
    figure, (left, right) = panels(2, height=2.8)
    _bars(left, log_mu, log_pi)
    ratio = np.exp(log_pi - log_mu)
    colors = [BLUE if r > 1 else ORANGE for r in ratio]
    right.bar(_letters(ratio), ratio, color=colors, width=0.6)
    right.axhline(1, color=MUTED, linewidth=1)
    right.set(title="weight r = new / old", xlabel="answer", ylabel="r")
    return Picture(figure, "Probability of each answer under two policies, and its weight.")


def _bars(axes: Axes, log_mu: Floats, log_pi: Floats) -> None:
    place = np.arange(len(log_mu))
    axes.bar(place - 0.2, np.exp(log_mu), 0.38, color=MUTED, label="old policy, sampled")
    axes.bar(place + 0.2, np.exp(log_pi), 0.38, color=BLUE, label="new policy, asked about")
    axes.set_xticks(place, _letters(log_mu))
    axes.set(title="two policies", xlabel="answer", ylabel="probability")
    axes.legend()


def _letters(values: Floats) -> list[str]:
    return [chr(ord("A") + i) for i in range(len(values))]


def spread(found: Estimates, title: str) -> Picture:
    """Histograms of the plain, the weighted and the fresh estimate, with the truth."""
    figure, (axes,) = panels(height=3.2)
    shown = ("plain", found.plain, ORANGE), ("weighted", found.weighted, BLUE)
    for name, values, color in (*shown, ("fresh samples", found.fresh, MUTED)):
        sns.kdeplot(
            x=values, ax=axes, color=color, fill=True, alpha=0.25, label=name, warn_singular=False
        )
    axes.axvline(found.truth, color=INK, linestyle="--", linewidth=1, label="truth")
    axes.set(title=title, xlabel="estimated reward of the new policy", ylabel="", yticks=[])
    axes.set_xlim(0, max(1.0, 2 * found.truth))
    sns.despine(ax=axes, left=True)
    axes.legend(loc="upper right")
    says = "Estimates from old samples without and with weights, and from fresh ones."
    return Picture(figure, says)


def worth(lengths: Sequence[int], ess: Sequence[float], token: float) -> Picture:
    """ESS/n of whole answers against their length, with what independence predicts."""
    figure, (axes,) = panels(height=3.0)
    axes.plot(
        lengths,
        [token**n for n in lengths],
        color=MUTED,
        linestyle=":",
        label="(ESS/n of a token)$^T$",
    )
    axes.plot(lengths, ess, color=BLUE, marker="o", label="measured")
    axes.set(xscale="log", yscale="log", xlabel="tokens T of an answer", ylabel="ESS/n of answers")
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=1))
    axes.legend()
    return Picture(figure, "The effective sample size of whole answers falls with their length.")


def estimators(found: Mapping[str, Floats]) -> Picture:
    """Distributions of k1, k3 and M2 over mini-batches."""
    figure, axes = panels(3, height=2.8)
    titles = {
        "k1": "k1 = mean of -d",
        "k3": "k3 = mean of $e^d - 1 - d$",
        "m2": "M2 = mean of $d^2$",
    }
    for one, (name, title) in zip(axes, titles.items(), strict=True):
        values = found[name]
        places, counts = np.unique(values.round(9), return_counts=True)
        colors = [RED if place < 0 else BLUE for place in places]
        one.bar(places, counts, 0.8 * np.diff(places).min(), color=colors)
        one.axvline(0, color=INK, linewidth=1)
        one.axvline(values.mean(), color=MUTED, linestyle="--", linewidth=1.2)
        one.set(title=title, yticks=[], xlabel="nats" if name != "m2" else "nats²")
        sns.despine(ax=one, left=True)
    says = "Over mini-batches k1 has both signs, k3 and M2 are never negative."
    return Picture(figure, says)


def bound(steps: Sequence[Step]) -> Picture:
    """The bound of the paper, exactly: chi-square against R^2 M2 at each lag."""
    figure, (left, right) = panels(2, height=2.9)
    lags = [step.lag for step in steps]
    m2 = np.array([step.second_moment for step in steps])
    left.plot(lags, m2, color=BLUE, marker="o")
    left.set(title="M2 of a policy in training", xlabel="lag, updates", ylabel="M2, nats²")
    top = [step.ratio_bound**2 * value for step, value in zip(steps, m2, strict=True)]
    right.fill_between(lags, 0, top, color=BLUE, alpha=0.15, label="allowed: up to R² M2")
    right.plot(lags, [step.chi_square for step in steps], color=RED, marker="o", label="E (r - 1)²")
    right.set(title="it bounds the variance of the weights", xlabel="lag, updates", ylim=(0, None))
    right.legend(loc="upper left")
    return Picture(
        figure, "The variance of the weights stays below R squared times M2 at all lags."
    )


def blind(nats: Sequence[float], found: Mapping[str, Sequence[float]], at: float) -> Picture:
    """ESS, and M2 beside KL, while one answer moves; a dot marks where it is now."""
    figure, (left, right) = panels(2, height=3.0)
    left.plot(nats, found["ess_fraction"], color=MUTED, linewidth=2)
    left.set(title="ESS/n", ylim=(0, 1.05), xlabel="change of one answer's logit, nats")
    right.plot(nats, found["m2"], color=BLUE, linewidth=2, label="M2, nats²")
    right.plot(nats, found["k3"], color=ORANGE, linewidth=2, label="k3, nats")
    right.set(title="M2 and KL", xlabel="change of one answer's logit, nats", ylim=(0, None))
    here = list(nats).index(at)
    left.plot(at, found["ess_fraction"][here], "o", color=RED)
    right.plot([at, at], [found["m2"][here], found["k3"][here]], "o", color=RED)
    for axes in (left, right):
        axes.axvspan(min(nats), 0, color=RED, alpha=0.06)
        axes.axvline(0, color=MUTED, linewidth=1)
    left.annotate("given up: r → 0", (min(nats) + 0.3, 0.08), color=RED)
    right.legend(loc="upper center")
    says = "ESS stays high where an answer is given up, and falls only where one is raised."
    return Picture(figure, says)
