"""How stale the data could get: the lag at which a criterion is met, with an interval."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from m2po_lab.analysis.active import is_active
from m2po_lab.analysis.bins import Bools, Floats
from m2po_lab.analysis.bootstrap import (
    LEVELS,
    MIN_ROWS,
    REPLICATES,
    enough,
    poisson_weights,
    replicates,
)
from m2po_lab.analysis.options import Options
from m2po_lab.analysis.tables import RatioTables
from m2po_lab.analysis.whatif import Stage
from m2po_lab.core.moments import ess_fraction
from m2po_lab.logs.rows import UNKNOWN

FEWEST_LAGS = 3
FEWEST_TOKENS = 30
"""A lag with fewer tokens, or rows in under `MIN_ROWS` buckets, is left out."""
FARTHEST = 2.0
"""Nothing is said beyond this many times the largest lag."""
MOST_LAGS = 64
"""More lags are joined with their neighbours, of about the same number of tokens each."""
MOST_SAMPLED = 1 << 16
"""Active tokens a lag for which M2PO is solved in every replicate."""
Report = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Curve:
    """A criterion by lag: the value is to stay below the limit, and is expected to grow with lag.

    Attributes:
        lag: (L,) ascending.
        n: (L,) tokens behind each value.
        value: (L,) of the log.
        resampled: (L, REPLICATES) of the bootstrap.
        limit: where the criterion is met.
    """

    lag: Floats
    n: Floats
    value: Floats
    resampled: Floats
    limit: float

    def where(self, keep: Bools) -> "Curve":
        """Return the curve at some of its lags."""
        lag, n, value, resampled = (
            column[keep] for column in (self.lag, self.n, self.value, self.resampled)
        )
        return Curve(lag, n, value, resampled, self.limit)


def reach_report(tables: RatioTables, stage: Stage | None, options: Options) -> list[Report] | None:
    """Return the report's "reach"; null without lags.

    A criterion's curve over lags is made monotone (isotonic regression) and interpolated; beyond
    the largest lag a straight line through it is followed up to `FARTHEST` times that lag. low and
    high are the 95 % bootstrap interval over rows, null where a bound lies beyond. `note` says
    why there is no lag: "not enough lags", or "not met up to lag X".
    """
    if not len(tables.cells["lag"]):
        return None
    percent = f"{100 * options.reach_clipped:g} %"
    eps = f"{options.clip_low:g}"
    if options.clip_low != options.clip_high:
        eps = f"-{options.clip_low:g}/+{options.clip_high:g}"
    entries = [
        ("ppo", f"a clip of {eps} drops {percent} of active tokens", clip_curve(tables, options)),
        (None, f"ESS falls below {options.reach_ess:g}", ess_curve(tables, options)),
        (
            "m2po",
            f"M2PO masks {100 * options.reach_masked:g} % of active tokens",
            m2po_curve(stage, options),
        ),
    ]
    return [
        {"objective": name, "criterion": text, **crossing(curve)} for name, text, curve in entries
    ]


def ess_curve(tables: RatioTables, options: Options) -> Curve | None:
    """1 - ESS fraction by lag, all tokens."""
    cells = tables.cells["lag"]
    cells = cells.take([lag for lag in cells.sorted_keys() if lag >= 0])
    if not len(cells):
        return None
    curve = Curve(
        np.asarray(cells.keys, dtype=np.float64),
        cells.field("n").astype(np.float64),
        1 - np.asarray(ess_fraction(cells.sums)),
        1 - replicates(cells)[1],
        1 - options.reach_ess,
    )
    return curve.where(enough(cells) & (curve.n >= FEWEST_TOKENS))


def clip_curve(tables: RatioTables, options: Options) -> Curve | None:
    """Share of active tokens that the clip drops, by lag; None without advantages."""
    table = tables.lags
    table = table.take([lag for lag in table.sorted_keys() if lag >= 0])
    if not len(table):
        return None
    active, clipped = (table.field(n).astype(np.float64) for n in ("active", "clipped"))
    n, weights = active.sum(axis=1), poisson_weights()
    with np.errstate(invalid="ignore", divide="ignore"):
        resampled = (clipped @ weights) / (active @ weights)
    lag = np.asarray(table.keys, dtype=np.float64)
    curve = Curve(lag, n, clipped.sum(axis=1) / n, resampled, options.reach_clipped)
    return curve.where(((active > 0).sum(axis=1) >= MIN_ROWS) & (n >= FEWEST_TOKENS))


def m2po_curve(stage: Stage | None, options: Options) -> Curve | None:
    """Share of active tokens that M2PO masks if all tokens had one lag; None without advantages."""
    if stage is None or stage.advantage is None:
        return None
    active = is_active(stage.d, stage.advantage) & (stage.chunk.lag >= 0)
    active &= stage.chunk.lag != UNKNOWN
    lag, square = stage.chunk.lag[active], stage.d[active] ** 2
    bucket = stage.chunk.bucket[stage.chunk.row[active]]
    found = []
    for value in np.unique(lag).tolist():
        here = np.flatnonzero(lag == value)
        here = here[:: 1 + here.size // MOST_SAMPLED]
        if here.size < FEWEST_TOKENS or np.unique(bucket[here]).size < MIN_ROWS:
            continue
        order = here[np.argsort(square[here], kind="stable")]
        found.append((value, here.size, *_shares(square[order], bucket[order], options.budget)))
    if not found:
        return None
    columns = [np.asarray(column, dtype=np.float64) for column in zip(*found, strict=True)]
    return Curve(columns[0], columns[1], columns[2], columns[3], options.reach_masked)


def _shares(square: Floats, bucket: Any, budget: float) -> tuple[float, Floats]:
    """Share masked of ascending squares, of the log and of every replicate."""
    plain = _masked_share(square, np.ones_like(square), budget)
    weights = poisson_weights()
    resampled = [_masked_share(square, weights[bucket, i], budget) for i in range(REPLICATES)]
    return plain, np.asarray(resampled)


def _masked_share(square: Floats, weight: Floats, budget: float) -> float:
    n, total = np.cumsum(weight), np.cumsum(weight * square)
    if n[-1] == 0:
        return np.nan
    kept = np.flatnonzero(total <= budget * n)
    return float(1 - (n[kept[-1]] if kept.size else 0.0) / n[-1])


def crossing(curve: Curve | None) -> Report:
    """Return lag, low, high and note of a curve."""
    blank: Report = {"lag": None, "low": None, "high": None}
    if curve is None or curve.lag.size < FEWEST_LAGS:
        return {**blank, "note": "not enough lags"}
    curve = joined(curve)
    lag = _cross(curve.lag, curve.value, curve.n, curve.limit)
    every = [
        _cross(curve.lag, curve.resampled[:, i], curve.n, curve.limit) for i in range(REPLICATES)
    ]
    low, high = np.quantile(every, LEVELS, method="closest_observation")
    farthest = FARTHEST * curve.lag[-1]
    if not np.isfinite(lag):
        blank["low"] = _known(low)
        return {**blank, "note": f"not met up to lag {farthest:g}"}
    note = "extrapolated" if lag > curve.lag[-1] else None
    return {"lag": _known(lag), "low": _known(low), "high": _known(high), "note": note}


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def joined(curve: Curve) -> Curve:
    """Return the curve with neighbouring lags joined until there are at most `MOST_LAGS`."""
    if curve.lag.size <= MOST_LAGS:
        return curve
    share = np.cumsum(curve.n) / curve.n.sum()
    owner = np.minimum((share * MOST_LAGS).astype(np.int64), MOST_LAGS - 1)
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    n = np.add.reduceat(curve.n, starts)

    def mean(values: Floats) -> Floats:
        weight = curve.n if values.ndim == 1 else curve.n[:, None]
        total = np.add.reduceat(values * weight, starts, axis=0)
        return np.asarray(total / (n if values.ndim == 1 else n[:, None]))

    return Curve(mean(curve.lag), n, mean(curve.value), mean(curve.resampled), curve.limit)


def _cross(lag: Floats, value: Floats, n: Floats, limit: float) -> float:
    """Smallest lag at which the monotone curve reaches the limit; inf beyond what can be said."""
    from scipy.optimize import isotonic_regression

    known = np.isfinite(value)
    if known.sum() < FEWEST_LAGS:
        return np.inf
    lag, value, n = lag[known], value[known], n[known]
    smooth = isotonic_regression(value, weights=n).x
    reached = np.flatnonzero(smooth >= limit)
    if reached.size == 0:
        return _extrapolate(lag, smooth, n, limit)
    at = int(reached[0])
    if at == 0 or smooth[at] == smooth[at - 1]:
        return float(lag[at])
    part = (limit - smooth[at - 1]) / (smooth[at] - smooth[at - 1])
    return float(lag[at - 1] + part * (lag[at] - lag[at - 1]))


def _extrapolate(lag: Floats, smooth: Floats, n: Floats, limit: float) -> float:
    """Follow the straight line through the monotone curve, at most to FARTHEST * the last lag."""
    mean_lag, mean = np.average(lag, weights=n), np.average(smooth, weights=n)
    spread = np.sum(n * (lag - mean_lag) ** 2)
    slope = np.sum(n * (lag - mean_lag) * (smooth - mean)) / spread
    if slope <= 0:
        return np.inf
    found = max(float(mean_lag + (limit - mean) / slope), float(lag[-1]))
    return found if found <= FARTHEST * lag[-1] else np.inf
