"""Rules about where drift comes from: engines, staleness, updates within a step, position."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from m2po_lab.findings.finding import Hit, places
from m2po_lab.findings.slope import slope
from m2po_lab.findings.view import Cell, View, rank_correlation, share_beyond
from m2po_lab.integrity.pairs import LEVELS
from m2po_lab.logs.rows import UNKNOWN


def negative_lag(view: View) -> Iterator[Hit]:
    """Versions from the future."""
    versions = view.evidence.versions
    if versions is not None and versions.negative:
        low = min(int(s.lag.low) for s in view.evidence.steps.values() if s.lag is not None)
        yield Hit(
            f"{versions.negative} of {versions.known} tokens in {versions.negative_rows} rows "
            f"have a negative lag, down to {low}.",
            {
                "ratio": None,
                "tokens": versions.negative,
                "n": versions.known,
                "rows": versions.negative_rows,
                "lowest": low,
                "examples": places(versions.examples),
            },
        )


JUMP_STEPS = 4
"""Steps that must come before one whose lag jumps."""
RUNNING = 5
"""Steps of the running median of the largest lag."""


def lag_jump(view: View) -> Iterator[Hit]:
    """Largest lag of each step against the steps before."""
    series = [(step, s.lag.high) for step, s in view.steps if s.lag is not None]
    for at in range(JUMP_STEPS, len(series)):
        before = [lag for _, lag in series[:at]]
        step, lag = series[at]
        usual = float(np.median(np.abs(np.diff(before[-RUNNING:]))))
        jump = lag - max(before)
        middle = float(np.median(before[-RUNNING:]))
        if jump > max(view.limits["lag_jump"], 4 * usual) and lag >= 2 * (middle + 1):
            yield Hit(
                f"The largest lag is {lag:.0f} at step {step}, after at most {max(before):.0f} in "
                f"the {len(before)} steps before.",
                {"ratio": None, "step": step, "lag": int(lag), "before": [int(b) for b in before]},
            )
            return


def mixed_versions(view: View) -> Iterator[Hit]:
    """Rows with several versions."""
    versions = view.evidence.versions
    if versions is not None and versions.mixed:
        yield Hit(
            f"{versions.mixed} of {versions.rows} rows hold tokens of several policy versions.",
            {"ratio": None, "rows": versions.mixed, "rows_with_versions": versions.rows},
        )


def staleness_not_separable(view: View) -> Iterator[Hit]:
    """Ratios without lags."""
    if view.pairs and not view.knows_lag:
        yield Hit(
            "No token has a known lag: drift from staleness and from the engines look alike.",
            {"ratio": next(iter(view.pairs)), "tokens": view.evidence.tokens.kept},
        )


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
        if ratio != "current/proximal" and not view.only_fresh(ratio):
            yield from _by_lag(view, ratio, "an older version than the newest there was")


def _by_lag(view: View, ratio: str, why: str) -> Iterator[Hit]:
    found = _grown(view, ratio)
    if found is None:
        return
    lag, high, base, floor = found
    yield Hit(
        f"M2 of {ratio} is {high.m2:.3g} [{high.low:.2g}, {high.high:.2g}] at lag {lag} against "
        f"{floor.m2:.2g} at lag {base}: {why}.",
        {
            "ratio": ratio,
            "lag": lag,
            **high.evidence(),
            "floor": {"lag": base, **floor.evidence()},
            "by_lag": [{"lag": g, "n": c.n, "m2": c.m2} for g, c in view.by_lag(ratio).items()],
        },
    )


def in_step_drift(view: View) -> Iterator[Hit]:
    """Drift of the updates made on one rollout batch."""
    for ratio in ("current/behavior", "proximal/behavior"):
        if ratio in view.pairs and view.only_fresh(ratio):
            yield from _by_lag(view, ratio, "all lags lie within the updates of one rollout batch")
    ratio = "current/proximal"
    if ratio not in view.pairs or _is_copy(view, "proximal/behavior"):
        return
    whole = view.pool(ratio, lambda step, trained, lag: True)
    far = whole.m2 > view.limits["drift_m2"] and whole.low > view.limits["floor_m2"]
    if view.enough(whole) and far:
        yield Hit(
            f"M2 of {ratio} is {whole.m2:.3g} [{whole.low:.2g}, {whole.high:.2g}]: the policy "
            "moves that far between the start of a step and the loss.",
            {"ratio": ratio, **whole.evidence()},
        )


def _is_copy(view: View, ratio: str) -> bool:
    pair = view.pairs.get(ratio)
    return pair is not None and pair.equal >= view.limits["equal_share"] * max(pair.nonzero, 1)


def engine_mismatch(view: View) -> Iterator[Hit]:
    """M2 at lag 0 against what precision explains."""
    ratio = view.engine_ratio
    if ratio is None:
        return
    floor = view.pool(ratio, lambda step, trained, lag: lag == 0)
    known = view.by_lag(ratio).get(0, floor)
    if view.enough(floor) and known.low > view.limits["floor_m2"]:
        yield Hit(
            f"M2 of {ratio} is {known.m2:.3g} [{known.low:.2g}, {known.high:.2g}] at lag 0, over "
            f"{known.n} tokens of {known.rows} rows.",
            {"ratio": ratio, "lag": 0, **known.evidence()},
        )


def confident_disagreement(view: View) -> Iterator[Hit]:
    """Sure tokens that the trainer finds impossible, at lag 0."""
    ratio = view.engine_ratio
    if ratio is None:
        return
    likely, wrong, rows = view.pairs[ratio].certain[0].tolist()
    if wrong >= view.limits["certain_tokens"]:
        yield Hit(
            f"{wrong} of {likely} lag-0 tokens with behavior probability of at least .5 are "
            f"scored more than 2 nats lower ({ratio}), in {rows} rows.",
            {
                "ratio": ratio,
                "lag": 0,
                "tokens": wrong,
                "n": likely,
                "rows": rows,
                "examples": places(view.pairs[ratio].surprised),
            },
        )


def at_lag_0(at: int) -> Callable[[int, int, int], bool]:
    """Cells of one step at lag 0."""
    return lambda step, trained, lag: step == at and lag == 0


def weights_not_synced(view: View) -> Iterator[Hit]:
    """Lag-0 drift by step."""
    ratio, limits = view.engine_ratio, view.limits
    if ratio is None:
        return
    names = sorted({s for s, _, lag in view.evidence.cells[ratio] if lag == 0 and s != UNKNOWN})
    if len(names) < limits["sync_steps"]:
        return
    series = [view.pool(ratio, at_lag_0(at)).m2 for at in names]
    part = max(len(names) // 3, 1)
    early = view.pool(ratio, lambda s, t, g: g == 0 and s <= names[part - 1])
    late = view.pool(ratio, lambda s, t, g: g == 0 and s >= names[-part])
    rising = rank_correlation(series) >= limits["sync_rank"]
    enough = view.enough(early) and view.enough(late)
    apart = late.low > max(limits["sync_growth"] * early.m2, early.high, limits["floor_m2"])
    if rising and enough and apart:
        yield Hit(
            f"M2 of {ratio} at lag 0 grows from {early.m2:.2g} to {late.m2:.2g} over steps "
            f"{names[0]} to {names[-1]}, though the versions say that the weights are the same.",
            {
                "ratio": ratio,
                "lag": 0,
                "early": early.evidence(),
                "late": late.evidence(),
                "by_step": [{"step": s, "m2": m} for s, m in zip(names, series, strict=True)][:50],
            },
        )


def temperature_mismatch(view: View) -> Iterator[Hit]:
    """Fit of d as a function of the log-prob."""
    ratio = view.engine_ratio
    if ratio is None:
        return
    pair = view.pairs[ratio]
    counts = pair.levels[view.stratum(pair)].sum(axis=0)
    found = slope(counts, LEVELS)
    if found is None:
        return
    limits = view.limits
    if found.explained >= limits["slope_explained"] and abs(found.slope) >= limits["slope"]:
        yield Hit(
            f"d of {ratio} has a slope of {found.slope:+.2f} per nat of log-prob, and log-prob "
            f"explains {found.explained:.0%} of its spread, as if one side had temperature "
            f"{1 + found.slope:.2f} times the other's.",
            {
                "ratio": ratio,
                "slope": found.slope,
                "explained": found.explained,
                "n": found.n,
                "bins": found.bins,
            },
        )


def clip_below_noise_floor(view: View) -> Iterator[Hit]:
    """Lag-0 tokens outside the clip range."""
    ratio = view.engine_ratio
    if ratio is None:
        return
    pair, settings = view.pairs[ratio], view.settings
    n = int(pair.n[0])
    floor = view.pool(ratio, lambda step, trained, lag: lag == 0)
    if not view.enough(floor):
        return
    low = -math.log1p(-settings.clip_low) if settings.clip_low < 1 else math.inf
    down = share_beyond(pair.histogram[0, 0], low) if math.isfinite(low) else 0.0
    share = (down + share_beyond(pair.histogram[0, 1], math.log1p(settings.clip_high))) / n
    if share >= view.limits["clip_floor_share"]:
        yield Hit(
            f"{share:.1%} of the lag-0 tokens of {ratio} lie outside the clip range [1 - "
            f"{settings.clip_low:g}, 1 + {settings.clip_high:g}] before any update.",
            {
                "ratio": ratio,
                "share": share,
                "n": n,
                "clip_low": settings.clip_low,
                "clip_high": settings.clip_high,
            },
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


def length_bias(view: View) -> Iterator[Hit]:
    """Log length against lag, within steps; over all rows where steps have a single lag each."""
    steps = view.evidence.steps
    within = np.zeros(3)
    n = groups = 0
    for step in steps.values():
        m, length, lag, length2, lag2, cross = step.length_lag.tolist()
        if m < 2:
            continue
        within += (length2 - length**2 / m, lag2 - lag**2 / m, cross - length * lag / m)
        n, groups = n + int(m), groups + 1
    if within[1] <= 1e-9:
        total = np.sum([s.length_lag for s in steps.values()], axis=0) if steps else np.zeros(6)
        m, length, lag, length2, lag2, cross = total.tolist()
        if m >= 2:
            within = np.array(
                [length2 - length**2 / m, lag2 - lag**2 / m, cross - length * lag / m]
            )
            n, groups = int(m), 1
    if n - groups < 8 or within[0] <= 1e-9 or within[1] <= 1e-9:
        return
    r = float(np.clip(within[2] / math.sqrt(within[0] * within[1]), -0.999999, 0.999999))
    z = math.atanh(r) * math.sqrt(n - groups - 2)
    if abs(r) >= view.limits["length_correlation"] and abs(z) >= view.limits["length_z"]:
        kind = "long" if r > 0 else "short"
        yield Hit(
            f"Length and lag correlate at {r:+.2f} over {n} rows: dropping stale rows would drop "
            f"{kind} ones.",
            {"ratio": None, "correlation": r, "z": z, "rows": n},
        )
