import numpy as np
import pytest

from m2po_lab.analysis import Options, scan
from m2po_lab.analysis.bootstrap import REPLICATES
from m2po_lab.analysis.reach import Curve, crossing, joined
from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.rows import Rows


def curve(lag: list[float], value: list[float], limit: float, noise: float = 0.0) -> Curve:
    rng = np.random.default_rng(0)
    spread = noise * rng.standard_normal((len(lag), REPLICATES))
    values = np.asarray(value, dtype=float)
    n = np.full(len(lag), 100.0)
    return Curve(np.asarray(lag, dtype=float), n, values, values[:, None] + spread, limit)


def stale(lags: list[int], rows: int = 60, length: int = 40) -> TokenBatch:
    """Gaussian drift whose variance is .01 a lag, with as many rows at each lag."""
    rng = np.random.default_rng(3)
    lag = np.repeat(lags, rows * length)
    behavior = -6.0 - rng.exponential(1.0, lag.size)
    sigma = 0.1 * np.sqrt(lag)
    return TokenBatch(
        behavior_logp=behavior,
        current_logp=behavior - sigma**2 / 2 + sigma * rng.standard_normal(lag.size),
        advantage=np.repeat(rng.choice([-1.0, 1.0], lag.size // length), length),
        version=100 - lag,
        lengths=np.full(lag.size // length, length),
        rows=Rows(train_version=np.full(lag.size // length, 100)),
    )


def test_a_straight_curve_is_interpolated():
    found = crossing(curve([0, 2, 4, 8], [0.0, 0.2, 0.4, 0.8], 0.3))
    assert found["lag"] == pytest.approx(3.0)
    assert found["low"] == found["high"] == pytest.approx(3.0)
    assert found["note"] is None


def test_the_interval_holds_the_lag():
    found = crossing(curve([0, 2, 4, 8], [0.0, 0.2, 0.4, 0.8], 0.3, noise=0.02))
    assert found["low"] < found["lag"] < found["high"]


def test_nothing_is_said_beyond_twice_the_largest_lag():
    line = ([0, 1, 2, 4], [0.0, 0.1, 0.2, 0.4])
    assert crossing(curve(*line, 0.7))["lag"] == pytest.approx(7.0)
    assert crossing(curve(*line, 0.7))["note"] == "extrapolated"
    beyond = crossing(curve(*line, 0.9))
    assert beyond["lag"] is beyond["high"] is None
    assert beyond["note"] == "not met up to lag 8"


def test_a_flat_curve_is_never_extrapolated():
    assert crossing(curve([0, 1, 2, 3], [0.1] * 4, 0.2))["lag"] is None


@pytest.mark.parametrize("found", [None, curve([0, 1], [0.0, 1.0], 0.5)])
def test_two_lags_are_not_enough(found: Curve | None):
    assert crossing(found) == {"lag": None, "low": None, "high": None, "note": "not enough lags"}


def test_a_criterion_met_at_the_first_lag_gives_that_lag():
    assert crossing(curve([1, 2, 3], [0.5, 0.6, 0.7], 0.1))["lag"] == 1.0


def test_many_lags_are_joined_without_moving_the_curve():
    lag = list(range(500))
    found = joined(curve(lag, [0.01 * x for x in lag], 1.0))
    assert found.lag.size == 64
    np.testing.assert_allclose(found.value, 0.01 * found.lag)
    assert crossing(curve(lag, [0.01 * x for x in lag], 1.0))["lag"] == pytest.approx(100.0)


def test_gaussian_drift_reaches_the_criteria_where_theory_says():
    report = scan([stale([0, 4, 8, 16, 32, 64, 96])], Options(reach_masked=0.02)).to_dict()
    reach = {entry["objective"]: entry for entry in report["reach"]}
    ess = reach[None]
    assert ess["lag"] == pytest.approx(np.log(2) / 0.01, rel=0.2)
    assert ess["low"] < np.log(2) / 0.01 < ess["high"]
    assert 0 < reach["ppo"]["lag"] <= 4
    assert 4 < reach["m2po"]["lag"] < 8


def test_without_versions_there_is_no_reach():
    report = scan([stale([0, 4, 8]).replace(version=None)]).to_dict()
    assert report["reach"] is None
    assert {"what": "reach", "needs": "version of each token and train_version"} in report[
        "not_computable"
    ]


def test_attribution_separates_the_floor_from_staleness():
    batch = stale([0, 8, 16])
    shifted = batch.replace(current_logp=batch.current_logp - 0.05)
    report = scan([shifted]).to_dict()
    found = report["attribution"]
    assert found["separable"] is True
    assert found["floor_lag0"] == pytest.approx(0.05**2)
    whole = report["ratios"]["current/behavior"]["all"]["m2"]
    assert found["floor_lag0"] + found["staleness"] == pytest.approx(whole)
    assert found["in_step"] is None


def test_attribution_names_the_updates_inside_the_step():
    batch = stale([0, 8])
    rng = np.random.default_rng(0)
    later = batch.current_logp + 0.3 * rng.standard_normal(batch.shape)
    report = scan([batch.replace(proximal_logp=batch.current_logp, current_logp=later)]).to_dict()
    found = report["attribution"]
    assert found["ratio"] == "proximal/behavior"
    assert found["floor_lag0"] == 0.0
    assert found["in_step"] == report["ratios"]["current/proximal"]["all"]["m2"]
    assert found["in_step"] == pytest.approx(0.09, rel=0.1)


def test_without_lag_zero_nothing_is_separable():
    found = scan([stale([2, 8])]).to_dict()["attribution"]
    assert found["separable"] is False
    assert found["floor_lag0"] is found["staleness"] is None


def test_a_copied_proximal_column_hides_no_staleness():
    batch = stale([0, 8])
    plain, copied = (
        scan([b]).to_dict()["attribution"]
        for b in (batch, batch.replace(proximal_logp=batch.behavior_logp))
    )
    assert copied == plain
    assert copied["staleness"] > 0.01
