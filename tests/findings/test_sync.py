"""Weights that do not follow are seen at any constant lag; honest growth is no error."""

import numpy as np
import pytest

from tests.findings.synthetic import Columns, found, loud, make

SEEDS = range(2)


def drifting(seed: int, lag: int, size, versions: bool = True) -> Columns:
    """A log of one lag whose trainer is `size(step)` nats away from its sampler."""
    c = make(seed, steps=9, rows=144, length=20, lags=(lag,), versions=versions)
    drift = np.array([size(s) for s in range(9)])[c.step[c.row]]
    drift = drift * np.random.default_rng(seed).normal(size=c.row.size)
    return c.with_(
        proximal=np.minimum(c.proximal + drift, 0), current=np.minimum(c.current + drift, 0)
    )


def unsynced(step: int) -> float:
    return 0.1 * step


def warm_up(step: int) -> float:
    return 0.25 * min(step / 3, 1.0)


@pytest.mark.parametrize("lag", [1, 4])
def test_weights_that_do_not_follow_are_seen_at_a_constant_lag(lag: int) -> None:
    for seed in SEEDS:
        finding = found(drifting(seed, lag, unsynced))["weights-not-synced"]
        assert finding.severity == "warning"
        assert finding.evidence["lag"] == lag
        assert finding.evidence["late"]["m2"] > 5 * finding.evidence["early"]["m2"]


def test_at_lag_0_they_are_an_error() -> None:
    for seed in SEEDS:
        assert found(drifting(seed, 0, unsynced))["weights-not-synced"].severity == "error"


def test_without_versions_the_growth_is_said_and_not_called_by_one_cause() -> None:
    for seed in SEEDS:
        findings = found(drifting(seed, 0, unsynced, versions=False))
        said = findings["staleness-not-separable"]
        assert said.severity == "warning"
        assert "weights-not-synced" in said.message
        assert said.evidence["grows"]["late"]["m2"] > 0.04
        assert "weights-not-synced" not in findings


@pytest.mark.parametrize("versions", [True, False])
def test_a_learning_rate_that_has_warmed_up_is_no_fault_of_the_sync(versions: bool) -> None:
    for seed in SEEDS:
        findings = loud(drifting(seed, 1, warm_up, versions))
        assert not {"weights-not-synced", "staleness-not-separable"} & set(findings)


@pytest.mark.parametrize("versions", [True, False])
def test_a_learning_rate_that_warms_up_all_along_is_never_an_error(versions: bool) -> None:
    for seed in SEEDS:
        findings = loud(drifting(seed, 2, lambda step: 0.04 * step, versions))
        names = {"weights-not-synced", "staleness-not-separable"} & set(findings)
        assert all(findings[name].severity == "warning" for name in names)
        quiet = loud(drifting(seed, 2, lambda step: 0.02 * step, versions))
        assert not {"weights-not-synced", "staleness-not-separable"} & set(quiet)
