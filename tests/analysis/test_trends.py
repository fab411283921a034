import json

import numpy as np
import pytest

from m2po_lab.analysis import scan
from m2po_lab.analysis.trends import MOST_POINTS, merged, trends_report
from m2po_lab.logs.metrics import MetricSeries


def series(name: str, step: list[int], value: list[float], framework: str = "verl-metrics"):
    return MetricSeries(
        name=name,
        source="metrics.jsonl",
        step=np.asarray(step),
        value=np.asarray(value, dtype=float),
        framework=framework,
    )


def test_a_rising_metric_has_trend_one_and_a_constant_one_none():
    rising, constant = trends_report(
        [series("b", [0, 1, 2, 3], [0.0, 0.1, 5.0, 6.0]), series("c", [0, 1, 2], [2.0] * 3)], []
    )
    assert rising["trend"] == pytest.approx(1.0)
    assert (rising["first"], rising["last"], rising["low"], rising["high"]) == (0, 6, 0, 6)
    assert constant["trend"] is None
    assert constant["mean"] == 2.0


def test_values_that_are_not_finite_are_counted_and_shown_as_gaps():
    (entry,) = trends_report([series("k3", [1, 2, 3], [0.5, np.inf, np.nan])], [])
    assert (entry["n"], entry["non_finite"], entry["last"]) == (3, 2, 0.5)
    assert entry["points"] == [[1, 0.5], [2, None], [3, None]]
    json.dumps(entry, allow_nan=False)


def test_the_step_of_a_metric_file_joins_the_step_of_the_tokens():
    verl, trl = trends_report(
        [series("x", [0, 1, 2], [1, 2, 3]), series("x", [1, 2, 3], [1, 2, 3], "trl-metrics")][::-1],
        [0, 1, 2],
    )[::-1]
    assert (verl["step_offset"], verl["shared_steps"]) == (0, 3)
    assert (trl["step_offset"], trl["shared_steps"]) == (1, 3)


def test_pieces_of_one_file_are_one_series_in_order_of_steps():
    whole = merged([series("a", [2, 3], [20, 30]), series("b", [0], [1]), series("a", [1], [10])])
    assert [s.name for s in whole] == ["a", "b"]
    assert whole[0].step.tolist() == [1, 2, 3]
    assert whole[0].value.tolist() == [10, 20, 30]


def test_a_long_series_is_thinned_to_its_first_and_last_step():
    (entry,) = trends_report([series("a", list(range(5000)), list(range(5000)))], [])
    assert len(entry["points"]) <= MOST_POINTS
    assert (entry["points"][0], entry["points"][-1]) == ([0, 0.0], [4999, 4999.0])


def test_a_log_without_metric_files_has_none():
    assert scan([]).to_dict()["metrics"] is None


def test_metrics_of_two_analyses_are_joined():
    first, second = scan([]), scan([])
    first.metrics, second.metrics = [series("a", [1], [1])], [series("a", [0], [3])]
    (entry,) = first.merge(second).to_dict()["metrics"]
    assert entry["points"] == [[0, 3.0], [1, 1.0]]
