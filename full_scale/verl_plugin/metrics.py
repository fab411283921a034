"""Numbers for verl's logger, finished once per mini-batch from sums over all tokens."""

import math

from full_scale.verl_plugin.config import SCOPES, M2POLossConfig
from m2po_lab.core.selection import Threshold

NAN = math.nan


def finished(
    totals: dict[str, float], threshold: Threshold | None, settings: M2POLossConfig
) -> dict[str, float]:
    """Metrics of one mini-batch; NaN where there is nothing to average.

    Args:
        totals: from `Tape.totals`: what the update really saw.
        threshold: that the mask was made with; None where the loss decided.
        settings: of the plugin.

    Returns:
        `m2po/m2_before` and `m2po/m2_after`: mean squared log-ratio of the trust-region tokens H
        (nats^2), all of them and those that keep their gradient; `m2po/active_fraction` and
        `m2po/masked_fraction`: tokens in H and tokens without gradient, of the valid ones;
        `m2po/threshold`: largest d^2 that stays (nats^2), NaN where nothing went; `m2po/scope`:
        position in `SCOPES`.
    """
    valid = totals["valid"]
    cut = threshold.value if threshold is not None else NAN
    return {
        "m2po/m2_before": _ratio(totals["square"], totals["active"]),
        "m2po/m2_after": _ratio(totals["square_kept"], totals["active_kept"]),
        "m2po/masked_fraction": _ratio(valid - totals["kept"], valid),
        "m2po/active_fraction": _ratio(totals["active"], valid),
        "m2po/threshold": cut if math.isfinite(cut) else NAN,
        "m2po/scope": float(SCOPES.index(settings.scope)),
    }


def staleness(first: list[int], last: list[int], version: int) -> dict[str, float]:
    """Versions between sampler and trainer, over the rows of one rank whose versions are known.

    Returns:
        `m2po/staleness` (mean over rows, newest tokens), `m2po/staleness_low` (of the newest row)
        and `m2po/staleness_high` (oldest tokens of the oldest row), in versions; NaN if unknown.
    """
    newest = [version - value for value in last if value >= 0]
    oldest = [version - value for value in first if value >= 0]
    return {
        "m2po/staleness": sum(newest) / len(newest) if newest else NAN,
        "m2po/staleness_low": float(min(newest)) if newest else NAN,
        "m2po/staleness_high": float(max(oldest)) if oldest else NAN,
    }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else NAN
