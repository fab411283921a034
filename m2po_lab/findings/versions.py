"""Rules about version bookkeeping: can the lags be right, and what goes with them?"""

import math
from collections.abc import Iterator

import numpy as np

from m2po_lab.findings.finding import Hit, places
from m2po_lab.findings.growth import WARM_UP, growth
from m2po_lab.findings.view import View
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
    """Ratios without lags, or without lag 0; a warning where weights seem not to follow."""
    if not view.pairs:
        return
    if view.knows_lag:
        yield from _without_floor(view)
        return
    said = "No token has a known lag: drift from staleness and from the engines look alike."
    ratio = view.engine_ratio or next(iter(view.pairs))
    numbers = {"ratio": next(iter(view.pairs)), "tokens": view.evidence.tokens.kept}
    found = growth(view, ratio, UNKNOWN, honest=True)
    if found is None:
        yield Hit(said, numbers)
        return
    yield Hit(
        f"{said} M2 of {ratio} {found.words()}, as it does if the sampler's weights do not follow "
        f"the trainer's (weights-not-synced). Or data grows ever staler, or {WARM_UP}",
        {**numbers, "grows": {"ratio": ratio, **found.evidence()}},
        severity="warning",
        advice="Compare a checksum of the weights on both sides after an update (LoRA adapters, "
        "tied embeddings, resume), and log the weight version of every token and the trainer's.",
    )


def _without_floor(view: View) -> Iterator[Hit]:
    """Much drift, and no token that the trainer's own weights have sampled to compare it with."""
    ratio = view.engine_ratio
    lags = [] if ratio is None else list(view.by_lag(ratio))
    if ratio is None or not lags or min(lags) <= 0:
        return
    whole = view.pool(ratio, lambda step, trained, lag: lag != UNKNOWN)
    if view.enough(whole) and whole.m2 > view.limits["drift_m2"]:
        yield Hit(
            f"No token has lag 0, the least is {min(lags)}: M2 of {ratio}, {whole.m2:.3g}, may "
            "come from staleness or from the engines.",
            {"ratio": ratio, **whole.evidence(), "lowest_lag": min(lags), "highest_lag": max(lags)},
            advice="Log a step on fresh rollouts too: what is left at lag 0 is the engines'.",
        )


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
