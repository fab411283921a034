"""Colours of the figures: fixed in PNG, variables that follow the reader's theme in SVG."""

from typing import Any

INK, MUTED, GRID, PAPER = "#1b1f24", "#68707a", "#dde1e6", "#ffffff"
BLUE, ORANGE, GREEN, RED, VIOLET = "#2767b0", "#c4581c", "#2e7d4f", "#b3303a", "#7350a8"

VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    PAPER: "var(--paper)",
    BLUE: "var(--blue)",
    ORANGE: "var(--orange)",
    GREEN: "var(--green)",
    RED: "var(--red)",
    VIOLET: "var(--violet)",
}
"""Colour in a figure -> the custom property of the page's style sheet that stands for it."""

SETTINGS: dict[Any, Any] = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "font.size": 10,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "svg.fonttype": "none",
    "svg.hashsalt": "m2po-lab",
}
"""matplotlib's settings; the hash salt makes the same figure the same bytes."""
