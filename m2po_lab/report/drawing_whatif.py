"""Drawing functions of the what-ifs and of the worst tokens; nothing is computed here."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.patches import Rectangle

from m2po_lab.report.drawing import Marks, Rows, legend_above, span
from m2po_lab.report.palette import BLUE, GREEN, GRID, INK, MUTED, ORANGE, RED

SIDES = (("binding_fraction_positive", "A>0", GREEN), ("binding_fraction_negative", "A<0", RED))
SHADES = LinearSegmentedColormap.from_list("shades", [to_rgba(BLUE, 0.0), to_rgba(BLUE, 0.65)])
"""One colour, more or less opaque: what lies under it, light or dark, shows through."""
MOST_ANNOTATED = 12
"""Up to this many columns of a matrix its cells hold their numbers."""
LONGEST_TEXT = 7
"""Characters of a token that fit its box."""


def objectives(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """A bar an objective: tokens without a gradient, by the sign of A; the mass kept beside it."""
    (ax,) = axes
    frame = pd.DataFrame(rows)
    place = range(len(frame))
    signed = frame["binding_fraction_positive"].notna().any()
    sides = SIDES if signed else (("zero_gradient_fraction", "all", BLUE),)
    left = 0.0 * frame["zero_gradient_fraction"].fillna(0.0).astype(float)
    for field, label, color in sides:
        width = frame[field].fillna(0.0).astype(float)
        ax.barh(place, width, left=left, color=color, label=label, height=0.7)
        left = left + width
    for y, x, mass in zip(place, left, frame["mass_kept"], strict=True):
        if pd.notna(mass):
            ax.text(x, y, f" {mass:.0%}", va="center", fontsize=8, color=MUTED)
    ax.set_yticks(place, frame["objective"])
    ax.invert_yaxis()
    ax.margins(x=0.14, y=0.01)
    ax.set_xlim(left=0)
    ax.set(xlabel="share of the tokens without a gradient" + (", mass kept" if signed else ""))
    ax.grid(visible=False, axis="y")
    if signed:
        legend_above(ax)


def overlap(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """A matrix of Jaccard indices."""
    (ax,) = axes
    names = list(dict.fromkeys(row["first"] for row in rows))
    table = pd.DataFrame(rows).pivot(index="first", columns="second", values="jaccard")
    _matrix(ax, table.loc[names, names], ".2f")


def lost(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """A matrix of shares: sets of dropped tokens by bins."""
    (ax,) = axes
    frame = pd.DataFrame(rows)
    frame["bin"] = [span(low, high) for low, high in zip(frame["low"], frame["high"], strict=True)]
    table = frame.pivot(index="objective", columns="bin", values="fraction")
    lines, bins = (list(dict.fromkeys(frame[name])) for name in ("objective", "bin"))
    _matrix(ax, table.loc[lines, bins], ".0%")


def _matrix(ax: Any, table: "pd.DataFrame", form: str) -> None:
    sns.heatmap(
        table,
        vmin=0,
        vmax=1,
        cmap=SHADES,
        annot=len(table.columns) <= MOST_ANNOTATED,
        fmt=form,
        annot_kws={"fontsize": 8, "color": INK},
        linewidths=1,
        linecolor=GRID,
        ax=ax,
        cbar=len(table.columns) > MOST_ANNOTATED,
    )
    ax.set(xlabel="", ylabel="")
    ax.tick_params(axis="y", rotation=0)
    if len(table.columns) > 6:
        ax.set_xticks(ax.get_xticks(), ax.get_xticklabels(), rotation=45, ha="right", va="top")
    else:
        ax.tick_params(axis="x", rotation=0)
    ax.grid(visible=False)


def worst(rows: Rows, marks: Marks, axes: Sequence[Any]) -> None:
    """A line of boxes a response, the worst token at 0, coloured by what M2PO does."""
    (ax,) = axes
    colors = {"masked": RED, "active": ORANGE, "unsure": MUTED}
    labels = {"masked": "masked by M2PO", "active": "kept, active", "unsure": "not known"}
    used = {}
    for row in rows:
        kind = next((mark for mark in colors if mark in row["marks"]), None)
        at_worst = "worst" in row["marks"]
        box = Rectangle(
            (row["offset"] - 0.46, row["rank"] - 0.36),
            0.92,
            0.72,
            facecolor=colors[kind] if kind else GRID,
            alpha=0.35,
            linewidth=0,
        )
        ax.add_patch(box)
        if kind:
            used[labels[kind]] = box
        if at_worst:
            frame = Rectangle(box.get_xy(), 0.92, 0.72, fill=False, edgecolor=INK, linewidth=1.2)
            ax.add_patch(frame)
        ax.text(
            row["offset"], row["rank"], _named(row), ha="center", va="center", fontsize=5.5,
            fontweight="bold" if at_worst else "normal",
        )  # fmt: skip
    names = {row["rank"]: _printable(row["response"]) or f"{row['rank']}" for row in rows}
    ax.set_yticks(list(names), list(names.values()), fontsize=7)
    ax.set(ylim=(max(names) + 0.6, 0.4), xlabel="tokens from the worst one")
    low, high = min(row["offset"] for row in rows), max(row["offset"] for row in rows)
    ax.set_xlim(low - 0.6, high + 0.6)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(visible=False)
    if used:
        legend_above(ax, list(used.values()), list(used))


def _named(row: dict[str, Any]) -> str:
    """A token's text if the figure's font has it and it fits, else its id."""
    text = _printable(row["text"] or "").strip()
    if text and len(text) <= LONGEST_TEXT:
        return text
    return "?" if row["token_id"] is None else str(row["token_id"])


def _printable(text: str) -> str:
    """Text that matplotlib neither lacks a glyph for nor reads as mathematics; "" for other."""
    return text.replace("$", r"\$") if text.isascii() and text.isprintable() else ""
