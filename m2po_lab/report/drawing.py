"""Drawing functions: rows and axes in, marks on the axes; nothing is computed here."""

import itertools
from collections.abc import Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.colors import LogNorm
from matplotlib.lines import Line2D

from m2po_lab.report.format import plain
from m2po_lab.report.palette import BLUE, GREEN, MUTED, ORANGE, RED, VIOLET

Rows = list[dict[str, Any]]
Marks = dict[str, float]

UPRIGHT = 6
"""Names of more bins than this stand aslant."""
SHORT = 50.0
"""An axis that spans less than this factor shows numbers between the powers of ten."""
LINEAR = 2.0**-12
"""Below this |d| the histogram's axis is linear."""
FEW_POINTS = 40
"""Up to this many points each one is marked."""
CLASSES = {"A>0": GREEN, "A<0": RED}
TICKS = (-10, -1, -0.1, -0.01, 0, 0.01, 0.1, 1, 10)


def log_ratio(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """Stacked histogram on a symmetric logarithmic axis; marks are dashed lines."""
    (ax,) = axes
    frame = pd.DataFrame(rows)
    names = [name for name in frame.columns if name not in ("low", "high")]
    edges = [*frame["low"], frame["high"].iloc[-1]]
    long = frame.melt(["low", "high"], names, var_name="advantage", value_name="n")
    long["d"] = (long["low"] + long["high"]) / 2
    sns.histplot(
        long,
        x="d",
        weights="n",
        hue="advantage",
        bins=edges,
        multiple="stack",
        palette={name: CLASSES.get(name, MUTED) for name in names},
        alpha=0.85,
        linewidth=0,
        ax=ax,
    )
    ax.set_xscale("symlog", linthresh=LINEAR, linscale=0.3)
    _log(ax, "y")
    ax.set(xlabel="d (nats)", ylabel="tokens")
    for name, place in marks.items():
        ax.axvline(place, color=BLUE if "M2PO" in name else ORANGE, linestyle="--", linewidth=1.2)
    legend = ax.get_legend()
    handles, labels = list(legend.legend_handles), [text.get_text() for text in legend.texts]
    for kind, color in (("clip", ORANGE), ("M2PO", BLUE)):
        if any(kind in name for name in marks):
            handles.append(Line2D([], [], color=color, linestyle="--"))
            labels.append(f"{kind} bounds")
    legend_above(ax, handles, labels)
    ax.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])


def probabilities(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """Cells sized by how many tokens they hold, with the diagonal."""
    (ax,) = axes
    frame = pd.DataFrame(rows)
    below, above, n = frame.columns
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=1)
    sns.scatterplot(
        frame,
        x=below,
        y=above,
        size=n,
        size_norm=LogNorm(1, max(2, frame[n].max())),
        sizes=(6, 160),
        color=BLUE,
        alpha=0.75,
        linewidth=0,
        ax=ax,
    )
    names = {name: name.removeprefix("p ") for name in (below, above)}
    ax.set(xlabel=f"probability under {names[below]}", ylabel=f"under {names[above]}")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    sns.move_legend(ax, "upper left", bbox_to_anchor=(1, 1), title="tokens")


def by_lag(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """M2 with its interval, a point a lag, on a logarithmic axis."""
    (ax,) = axes
    frame = pd.DataFrame(rows)
    _interval(frame, ax, "lag", "m2", None)
    ax.set(xlabel="lag (trainer updates)", ylabel="M2 (nats²)")
    _log_if_positive(ax, frame["m2"])
    _integers(ax)


def by_step(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """M2 and k3 on a logarithmic axis; ESS from 0 to 1; reward and entropy in the last panel."""
    frame = pd.DataFrame(rows)
    first, second, third = axes
    _interval(frame, first, "step", "m2", "M2")
    sns.lineplot(frame, x="step", y="k3", ax=first, color=ORANGE, label="k3", errorbar=None)
    first.set(ylabel="M2, k3", xlabel="")
    _log_if_positive(first, frame["m2"])
    sns.lineplot(frame, x="step", y="ess_fraction", ax=second, color=GREEN, errorbar=None)
    second.set(ylabel="ESS/n", xlabel="", ylim=(0, 1.05))
    sns.lineplot(frame, x="step", y="k1", ax=third, color=MUTED, label="k1", errorbar=None)
    for name, color in (("reward", VIOLET), ("entropy", BLUE)):
        if name in frame:
            sns.lineplot(frame, x="step", y=name, ax=third, color=color, label=name, errorbar=None)
    third.set(ylabel="k1, reward, entropy" if "reward" in frame else "k1", xlabel="step")
    _integers(third)


def facts(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """Reward and entropy by step."""
    (ax,) = axes
    frame = pd.DataFrame(rows)
    for name, color in (("reward", VIOLET), ("entropy", BLUE)):
        if name in frame:
            ax.plot(frame["step"], frame[name], color=color, marker="o", markersize=4, label=name)
    ax.set(xlabel="step")
    _integers(ax)
    legend_above(ax)


def metrics(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """One panel a metric; panels without one are hidden."""
    frame = pd.DataFrame(rows)
    names = list(dict.fromkeys(frame["metric"]))
    for ax, name in itertools.zip_longest(axes, names):
        if name is None:
            ax.set_visible(False)
            continue
        part = frame[frame["metric"] == name]
        sns.lineplot(part, x="step", y="value", ax=ax, color=BLUE, marker="o", errorbar=None)
        ax.set(xlabel="", ylabel="")
        ax.set_title(escaped(name), loc="left", fontsize=9)
        ax.ticklabel_format(axis="y", useOffset=False)
    last = axes[len(names) - 1]
    last.set(xlabel="step")
    last.tick_params(labelbottom=True)
    _integers(last)


def escaped(name: str) -> str:
    """A name from a log for a figure: no control characters, none read as mathematics."""
    return plain(name).replace("$", r"\$")


def runs_by_lag(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """M2 by lag, a line a run."""
    _runs(rows, axes, "lag", "lag (trainer updates)")


def runs_by_step(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """M2 by step, a line a run."""
    _runs(rows, axes, "step", "step")


def _runs(rows: Rows, axes: Sequence[Any], x: str, label: str) -> None:
    (ax,) = axes
    frame = pd.DataFrame(rows)
    names = list(dict.fromkeys(frame["run"]))
    for name, color in zip(names, itertools.cycle((BLUE, ORANGE, GREEN, RED, VIOLET, MUTED))):
        part = frame[frame["run"] == name]
        ax.plot(part[x], part["m2"], color=color, marker="o", markersize=4, label=escaped(name))
        known = part.dropna(subset=["m2_low", "m2_high"])
        ax.vlines(known[x], known["m2_low"], known["m2_high"], color=color, alpha=0.4, linewidth=2)
    ax.set(xlabel=label, ylabel="M2 (nats²)")
    _log_if_positive(ax, frame["m2"])
    _integers(ax)
    legend_above(ax)


def by_quadrant(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """Two bars a quadrant: share of tokens, share of the sum of d²."""
    (ax,) = axes
    frame = pd.DataFrame(rows).melt("quadrant", var_name="share", value_name="of all")
    frame["share"] = frame["share"].map({"tokens": "tokens", "mass": "sum of d²"})
    sns.barplot(
        frame,
        y="quadrant",
        x="of all",
        hue="share",
        ax=ax,
        palette=[MUTED, BLUE],
        saturation=1,
        errorbar=None,
    )
    ax.set(xlabel="share of all", ylabel="", xlim=(0, 1))
    ax.legend(title=None)


def by_probability(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """Mean and median |d| in each probability bucket."""
    _magnitudes(rows, axes, "probability under the behavior policy")


def by_position(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """Mean and median |d| in each position bucket."""
    _magnitudes(rows, axes, "position in the response (tokens)")


def clip_sweep(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """Share of tokens dropped against the clip range."""
    _sweep(rows, axes, "eps", "fraction", "clip range eps", ORANGE)


def budget_sweep(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """Share of tokens masked against the budget."""
    _sweep(rows, axes, "budget", "masked_fraction", "M2PO budget (nats²)", BLUE)


def _sweep(rows: Rows, axes: Sequence[Any], x: str, y: str, label: str, color: str) -> None:
    (ax,) = axes
    frame = pd.DataFrame(rows)
    sns.lineplot(frame, x=x, y=y, ax=ax, color=color, marker="o", errorbar=None)
    _log(ax, "x")
    ax.set(xlabel=label, ylabel="share of tokens")
    ax.set_ylim(bottom=0)


def _magnitudes(rows: Rows, axes: Sequence[Any], label: str) -> None:
    (ax,) = axes
    frame = pd.DataFrame(rows)
    frame["bucket"] = [
        span(low, high) for low, high in zip(frame["low"], frame["high"], strict=True)
    ]
    long = frame.melt("bucket", ["abs_mean", "abs_median"], var_name="of |d|", value_name="nats")
    long["of |d|"] = long["of |d|"].map({"abs_mean": "mean", "abs_median": "median"})
    sns.pointplot(
        long, x="bucket", y="nats", hue="of |d|", ax=ax, palette=[BLUE, MUTED], errorbar=None
    )
    ax.set(xlabel=label, ylabel="|d| (nats)")
    if len(frame) > UPRIGHT:
        ax.set_xticks(ax.get_xticks(), ax.get_xticklabels(), rotation=35, ha="right")
    _log_if_positive(ax, long["nats"])
    ax.legend(title=None)


def _interval(frame: pd.DataFrame, ax: Any, x: str, y: str, label: str | None) -> None:
    """A curve with its interval: bars at few points, a band at many."""
    few = len(frame) <= FEW_POINTS
    marker = "o" if few else None
    sns.lineplot(frame, x=x, y=y, ax=ax, color=BLUE, marker=marker, label=label, errorbar=None)
    known = frame.dropna(subset=[f"{y}_low", f"{y}_high"])
    low, high = known[f"{y}_low"], known[f"{y}_high"]
    if few:
        ax.vlines(known[x], low, high, color=BLUE, alpha=0.5, linewidth=2)
    else:
        ax.fill_between(known[x], low, high, color=BLUE, alpha=0.2, linewidth=0)


def _log_if_positive(ax: Any, values: "pd.Series[float]") -> None:
    if (values > 0).any():
        _log(ax, "y")


def _log(ax: Any, name: str) -> None:
    """Logarithmic, with ticks as plain numbers: to typeset powers takes a third of the time."""
    ax.set(**{f"{name}scale": "log"})
    axis = getattr(ax, f"{name}axis")
    axis.set_major_formatter(lambda value, _: f"{value:g}")

    def between(value: float, _: Any) -> str:
        """Powers of ten alone may leave an axis without a number: 2 and 5 on short ones as well."""
        low, high = axis.get_view_interval()
        return f"{value:g}" if high < SHORT * low and f"{value:e}"[0] in "25" else ""

    axis.set_minor_formatter(between)


def _integers(ax: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def span(low: float, high: float | None) -> str:
    """Name a bin by its edges; the last one may be open."""
    if high is None or pd.isna(high):
        return f"{low:g} up"
    return f"{low:g}" if low == high else f"{low:g}-{high:g}"


def legend_above(ax: Any, *entries: Any) -> None:
    """A legend in one line above the axes, where it hides no data."""
    n = len(entries[0]) if entries else len(ax.get_legend_handles_labels()[0])
    ax.legend(
        *entries,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=min(n, 3),
        title=None,
        borderaxespad=0.2,
        columnspacing=1.2,
        handlelength=1.4,
    )
