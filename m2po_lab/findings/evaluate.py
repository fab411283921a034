"""evaluate: an analysis in, its findings out; explain: what one finding means."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from m2po_lab.findings import data, drift, learning, tails
from m2po_lab.findings.catalog import CATALOG
from m2po_lab.findings.finding import SEVERITIES, Finding, Hit
from m2po_lab.findings.thresholds import resolve
from m2po_lab.findings.view import Analyzed, View

TESTS: Mapping[str, Callable[[View], Iterator[Hit]]] = {
    "shift-by-one": data.shift_by_one,
    "mask-shifted": data.mask_shifted,
    "length-mismatch": data.length_mismatch,
    "retokenised": data.retokenised,
    "missing-log-probs": data.missing_log_probs,
    "zero-filled-log-probs": data.zero_filled,
    "positive-log-probs": data.positive_log_probs,
    "sentinel-value": data.sentinel_value,
    "non-finite": data.non_finite,
    "empty-rows": data.empty_rows,
    "duplicate-rows": data.duplicate_rows,
    "repeated-padding": data.repeated_padding,
    "ratio-identically-one": data.ratio_identically_one,
    "bypass-mode": data.bypass_mode,
    "low-precision-log": data.low_precision_log,
    "negative-lag": drift.negative_lag,
    "lag-jump": drift.lag_jump,
    "mixed-versions": drift.mixed_versions,
    "staleness-drift": drift.staleness_drift,
    "in-step-drift": drift.in_step_drift,
    "engine-mismatch": drift.engine_mismatch,
    "staleness-not-separable": drift.staleness_not_separable,
    "confident-disagreement": drift.confident_disagreement,
    "weights-not-synced": drift.weights_not_synced,
    "temperature-mismatch": drift.temperature_mismatch,
    "truncated-support": tails.truncated_support,
    "truncated-weights": data.truncated_weights,
    "rare-outliers": tails.rare_outliers,
    "two-populations": tails.two_populations,
    "low-tail": tails.low_tail,
    "high-tail": tails.high_tail,
    "negative-side-drift": tails.negative_side_drift,
    "clip-below-noise-floor": drift.clip_below_noise_floor,
    "sequence-product": tails.sequence_product,
    "position-growth": drift.position_growth,
    "length-bias": drift.length_bias,
    "entropy-collapse": learning.entropy_collapse,
    "no-learning-signal": learning.no_learning_signal,
    "moving-without-signal": learning.moving_without_signal,
    "over-budget": tails.over_budget,
    "collapse-risk": learning.collapse_risk,
    "groups-broken": learning.groups_broken,
}
"""Id -> rule; every id of the catalog has one."""


def evaluate(
    analysis: Analyzed,
    thresholds: Mapping[str, float] | None = None,
    ignore: Iterable[str] = (),
) -> list[Finding]:
    """Return the findings of an analysis, errors first, then in the order of the catalog.

    Args:
        analysis: its `integrity` evidence, `options` and report are read.
        thresholds: changes to `THRESHOLDS`, by name.
        ignore: ids to leave out.

    Raises:
        ValueError: unknown threshold or id.
    """
    left_out = set(ignore)
    for name in left_out - set(CATALOG):
        raise ValueError(f"ignore: there is no finding {name!r}; one of {', '.join(CATALOG)}")
    view = View(analysis.to_dict(), analysis.integrity, resolve(thresholds), analysis.options)
    found = [
        _finding(name, hit)
        for name, rule in TESTS.items()
        if name not in left_out
        for hit in rule(view)
    ]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def _finding(name: str, hit: Hit) -> Finding:
    entry = CATALOG[name]
    return Finding(
        id=name,
        severity=hit.severity or entry.severity,
        title=entry.title,
        message=hit.message,
        evidence=hit.evidence,
        advice=hit.advice or entry.advice,
        source=entry.source,
    )


def explain(name: str) -> str:
    """Return what a finding means: what is tested, what to do, where it was reported.

    Raises:
        ValueError: no such finding.
    """
    if name not in CATALOG:
        raise ValueError(f"there is no finding {name!r}; one of {', '.join(CATALOG)}")
    entry = CATALOG[name]
    return (
        f"{name} ({entry.severity}): {entry.title}\n\n"
        f"Tests: {entry.rule}\n\nDo: {entry.advice}\n\nSource: {entry.source}\n"
    )
