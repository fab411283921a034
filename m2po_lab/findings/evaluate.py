"""evaluate: an analysis in, its findings out; explain: what one finding means."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from m2po_lab.findings import alignment, columns, drift, engine, learning, tails, values, versions
from m2po_lab.findings.catalog import CATALOG
from m2po_lab.findings.finding import SEVERITIES, Finding, Hit
from m2po_lab.findings.thresholds import resolve
from m2po_lab.findings.view import Analyzed, View

TESTS: Mapping[str, Callable[[View], Iterator[Hit]]] = {
    "shift-by-one": alignment.shift_by_one,
    "mask-shifted": alignment.mask_shifted,
    "length-mismatch": alignment.length_mismatch,
    "retokenised": alignment.retokenised,
    "missing-log-probs": values.missing_log_probs,
    "zero-filled-log-probs": values.zero_filled,
    "positive-log-probs": values.positive_log_probs,
    "sentinel-value": values.sentinel_value,
    "non-finite": values.non_finite,
    "empty-rows": values.empty_rows,
    "duplicate-rows": values.duplicate_rows,
    "repeated-padding": values.repeated_padding,
    "ratio-identically-one": columns.ratio_identically_one,
    "bypass-mode": columns.bypass_mode,
    "low-precision-log": columns.low_precision_log,
    "negative-lag": versions.negative_lag,
    "lag-jump": versions.lag_jump,
    "mixed-versions": versions.mixed_versions,
    "staleness-drift": drift.staleness_drift,
    "in-step-drift": drift.in_step_drift,
    "engine-mismatch": engine.engine_mismatch,
    "staleness-not-separable": versions.staleness_not_separable,
    "confident-disagreement": engine.confident_disagreement,
    "weights-not-synced": engine.weights_not_synced,
    "temperature-mismatch": engine.temperature_mismatch,
    "truncated-support": engine.truncated_support,
    "truncated-weights": columns.truncated_weights,
    "rare-outliers": tails.rare_outliers,
    "two-populations": tails.two_populations,
    "low-tail": tails.low_tail,
    "high-tail": tails.high_tail,
    "negative-side-drift": tails.negative_side_drift,
    "clip-below-noise-floor": engine.clip_below_noise_floor,
    "sequence-product": tails.sequence_product,
    "position-growth": drift.position_growth,
    "length-bias": versions.length_bias,
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
        analysis: its `integrity` evidence, `options`, `metrics` and report are read.
        thresholds: changes to `THRESHOLDS`, by name.
        ignore: ids to leave out.

    Raises:
        ValueError: unknown threshold or id.
    """
    left_out = set(ignore)
    for name in left_out - set(CATALOG):
        raise ValueError(f"ignore: there is no finding {name!r}; one of {', '.join(CATALOG)}")
    view = View(
        analysis.to_dict(),
        analysis.integrity,
        resolve(thresholds),
        analysis.options,
        analysis.metrics,
    )
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
