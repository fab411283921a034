"""Rules about columns that are copies, rounded or clipped."""

from collections.abc import Iterator
from typing import Any

from m2po_lab.core.batch import RATIOS
from m2po_lab.findings.finding import Hit
from m2po_lab.findings.names import NAMES
from m2po_lab.findings.view import View
from m2po_lab.integrity.columns import Grid


def _identical(view: View, ratios: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    for ratio in ratios:
        pair = view.pairs.get(ratio)
        if pair is None or pair.nonzero < view.limits["equal_tokens"]:
            continue
        if pair.equal >= view.limits["equal_share"] * pair.nonzero:
            yield ratio, {"ratio": ratio, "tokens": pair.nonzero, "equal": pair.equal}


def ratio_identically_one(view: View) -> Iterator[Hit]:
    """The current policy's column is a copy."""
    for ratio, numbers in _identical(view, ("current/behavior", "current/proximal")):
        yield Hit(
            f"{ratio} is 1 to the last bit on {numbers['equal']} of {numbers['tokens']} tokens: "
            "clip fractions are 0 by construction.",
            numbers,
        )


def bypass_mode(view: View) -> Iterator[Hit]:
    """The proximal policy's column is a copy of the behavior one."""
    for ratio, numbers in _identical(view, ("proximal/behavior",)):
        yield Hit(
            f"{ratio} is 1 to the last bit on {numbers['equal']} of {numbers['tokens']} tokens.",
            numbers,
        )


def low_precision_log(view: View) -> Iterator[Hit]:
    """Number grids of the columns."""
    for column, grid in view.evidence.columns.items():
        kind = _grid_kind(view, grid)
        if kind:
            name, used = NAMES[column], vars(grid)[kind]
            yield Hit(
                f"{used} of {grid.n} {name} log-probs are exact in {kind}.",
                {
                    "ratio": next((r for r, pair in RATIOS.items() if column in pair), None),
                    "column": name,
                    "grid": kind,
                    "tokens": grid.n,
                    "on_grid": used,
                },
            )


def _grid_kind(view: View, grid: Grid) -> str | None:
    if grid.n < view.limits["equal_tokens"]:
        return None
    wanted = view.limits["grid_share"] * grid.n
    return next((k for k in ("bfloat16", "float16") if vars(grid)[k] >= wanted), None)


def truncated_weights(view: View) -> Iterator[Hit]:
    """Pile-ups among logged weights."""
    weights = view.evidence.weights
    if weights is None:
        return
    least = max(view.limits["cap_tokens"], view.limits["cap_share"] * weights.n)
    for peak, sign, side in ((weights.top, 1, "largest"), (weights.bottom, -1, "smallest")):
        if peak is None or peak.count < least:
            continue
        cap = sign * peak.value
        if cap > 1 if sign > 0 else 0 <= cap < 1:
            yield Hit(
                f"{peak.count} of {weights.n} logged weights are exactly {cap:g}, the {side} "
                "there is: they were clipped before they were logged.",
                {
                    "ratio": next(iter(view.pairs), None),
                    "cap": cap,
                    "side": side,
                    "tokens": peak.count,
                    "n": weights.n,
                },
            )
