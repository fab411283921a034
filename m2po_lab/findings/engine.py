"""Rules about sampler against trainer on the same weights: precision, temperature, support."""

import math
from collections.abc import Iterator

import numpy as np

from m2po_lab.findings.finding import Hit, places
from m2po_lab.findings.growth import WARM_UP, growth
from m2po_lab.findings.slope import slope
from m2po_lab.findings.view import View, share_beyond
from m2po_lab.integrity.additive import Floats
from m2po_lab.integrity.pairs import LEVELS, MAGNITUDES
from m2po_lab.logs.rows import UNKNOWN


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


def weights_not_synced(view: View) -> Iterator[Hit]:
    """Drift at the smallest lag by step; a warning where that lag is not 0."""
    ratio = view.engine_ratio
    if ratio is None:
        return
    lags = [lag for _, _, lag in view.evidence.cells[ratio] if lag != UNKNOWN and lag >= 0]
    if not lags:
        return
    lag = min(lags)
    found = growth(view, ratio, lag, honest=lag > 0)
    if found is None:
        return
    same = "are the same" if lag == 0 else f"are always {lag} apart"
    doubt = "" if lag == 0 else f" Or the steps themselves grow: {WARM_UP}"
    yield Hit(
        f"M2 of {ratio} at lag {lag} {found.words()}, though the versions say that the weights "
        f"{same}.{doubt}",
        {"ratio": ratio, "lag": lag, **found.evidence()},
        severity=None if lag == 0 else "warning",
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


OFFSET = 0.05
"""Nats: where most tokens lie further below 0 the whole of d is moved, which no tail does."""


def truncated_support(view: View) -> Iterator[Hit]:
    """One-sided d with E[r] below 1."""
    limits = view.limits
    ratio = view.engine_ratio
    if ratio is None:
        return
    pair = view.pairs[ratio]
    chosen = view.stratum(pair)
    n = int(pair.n[chosen].sum())
    if n < limits["min_tokens"]:
        return
    sides = pair.histogram[chosen].sum(axis=0)
    deficit = -float(pair.excess[chosen].sum()) / n
    bound = _quantile(sides[0], 0.01 * n)
    outside = (share_beyond(sides[1], 0.02) + share_beyond(sides[0], bound * 1.25)) / n
    spread = math.sqrt(float(pair.squares[chosen].sum()) / n)
    everywhere = share_beyond(sides[0], OFFSET) >= n / 2
    if (
        deficit >= limits["support_deficit"]
        and deficit >= 5 * spread / math.sqrt(n)
        and outside <= limits["support_outside"]
        and (everywhere or math.exp(-bound) >= limits["support_mass"])
    ):
        yield Hit(
            f"E[r] of {ratio} is {1 - deficit:.3f}, and {1 - outside:.1%} of d lie in "
            f"[{-bound:.2f}, 0]: as if the sampler kept p = {math.exp(-bound):.2f} of the mass and "
            "renormalised it.",
            {
                "ratio": ratio,
                "ratio_mean": 1 - deficit,
                "n": n,
                "outside_share": outside,
                "log_p": -bound,
            },
        )


def _quantile(counts: Floats, beyond: float) -> float:
    """The |d| beyond which that many of the counts lie, upper edge of its bin."""
    above = np.cumsum(counts[::-1])[::-1]
    at = int((above > beyond).sum()) - 1
    return float(MAGNITUDES[min(max(at, 0), len(MAGNITUDES) - 1)])


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
