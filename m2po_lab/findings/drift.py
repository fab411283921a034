"""Rules about where drift comes from: staleness, updates within a step, position."""

import math
from collections.abc import Iterator

from m2po_lab.analysis.attribution import proximal_is_copy
from m2po_lab.analysis.freshness import Freshness
from m2po_lab.findings.finding import Hit
from m2po_lab.findings.view import Cell, View


def _grown(view: View, ratio: str) -> tuple[int, Cell, int, Cell] | None:
    """(lag, cell, floor's lag, floor) where drift stands above the floor; the surest such lag."""
    limits = view.limits
    table = {lag: c for lag, c in view.by_lag(ratio).items() if lag >= 0 and view.enough(c)}
    if len(table) < 2:
        return None
    base = min(table)
    floor = table.pop(base)
    ceiling = max(floor.high if math.isfinite(floor.high) else floor.m2, 0.0)
    above = {
        lag: c
        for lag, c in table.items()
        if c.m2 > limits["drift_m2"]
        and c.low > max(ceiling, limits["drift_growth"] * floor.m2, limits["floor_m2"])
    }
    if not above:
        return None
    lag = max(above, key=lambda g: above[g].low)
    return lag, above[lag], base, floor


def staleness_drift(view: View) -> Iterator[Hit]:
    """Drift by lag, where data was older than it had to be."""
    for ratio in view.pairs:
        found = view.freshness(ratio)
        if ratio != "current/proximal" and not found.is_fresh:
            yield from _by_lag(view, ratio, found)


def _by_lag(view: View, ratio: str, rollouts: Freshness) -> Iterator[Hit]:
    found = _grown(view, ratio)
    if found is None:
        return
    lag, high, base, floor = found
    yield Hit(
        f"M2 of {ratio} is {high.m2:.3g} [{high.low:.2g}, {high.high:.2g}] at lag {lag} against "
        f"{floor.m2:.2g} at lag {base}: {rollouts.why}.",
        {
            "ratio": ratio,
            "lag": lag,
            **high.evidence(),
            "floor": {"lag": base, **floor.evidence()},
            "by_lag": [{"lag": g, "n": c.n, "m2": c.m2} for g, c in view.by_lag(ratio).items()],
            "updates_per_batch": rollouts.updates,
            "updates_per_version": rollouts.longest,
        },
    )


def in_step_drift(view: View) -> Iterator[Hit]:
    """Drift of the updates made on one rollout batch."""
    for ratio in ("current/behavior", "proximal/behavior"):
        found = view.freshness(ratio)
        if ratio in view.pairs and found.is_fresh:
            yield from _by_lag(view, ratio, found)
    ratio = "current/proximal"
    is_copy = proximal_is_copy(view.evidence, view.limits["equal_share"])
    if ratio not in view.pairs or is_copy:
        return
    whole = view.pool(ratio, lambda step, trained, lag: True)
    far = whole.m2 > view.limits["drift_m2"] and whole.low > view.limits["floor_m2"]
    if view.enough(whole) and far:
        yield Hit(
            f"M2 of {ratio} is {whole.m2:.3g} [{whole.low:.2g}, {whole.high:.2g}]: the policy "
            "moves that far between the start of a step and the loss.",
            {"ratio": ratio, **whole.evidence()},
        )


def position_growth(view: View) -> Iterator[Hit]:
    """Early against late halves of rows."""
    for ratio, halves in view.evidence.halves.items():
        if ratio not in view.pairs:
            continue
        up, down, _ = halves.rows.tolist()
        early, late = halves.squares.tolist()
        p = _sign_test(up, up + down)
        rows = up + down
        grown = late >= view.limits["growth"] * early and late > view.limits["floor_m2"] / 10 * rows
        if rows >= view.limits["min_rows"] and p <= view.limits["growth_p"] and grown:
            yield Hit(
                f"{ratio}: mean d^2 is {late / rows:.2g} in the later half of rows, "
                f"{early / rows:.2g} in the earlier; it is larger later in {up} of {rows} rows.",
                {
                    "ratio": ratio,
                    "rows": rows,
                    "later_larger": up,
                    "early_m2": early / rows,
                    "late_m2": late / rows,
                    "p": p,
                },
            )


def _sign_test(up: int, n: int) -> float:
    """One-sided P(at least `up` heads in n fair tosses)."""
    if n == 0:
        return 1.0
    logs = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
        for k in range(up, n + 1)
    ]
    return min(sum(math.exp(x) for x in logs), 1.0)
