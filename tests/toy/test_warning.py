"""Early warning: labels never look back, areas and alarms count what they say."""

import numpy as np
import pytest

from toy_envs import warning


def test_a_reward_that_never_falls_far_has_no_onset():
    assert warning.onset(np.linspace(0, 1, 50)) is None
    assert warning.onset(np.full(50, 0.8) - 0.2 * (np.arange(50) > 25)) is None


def test_the_onset_is_where_the_smoothed_reward_has_fallen():
    reward = np.where(np.arange(60) < 40, 0.9, 0.4)
    # Three of five values at .4 bring the mean to .6, which is .3 below .9.
    assert warning.onset(reward) == 42


def test_one_bad_step_is_no_collapse():
    reward = np.full(60, 0.9)
    reward[30] = 0.0
    assert warning.onset(reward) is None


def test_labels_leave_out_what_is_near_and_what_is_past():
    found = warning.labels(80, 100)
    ahead = (80 - np.arange(100)) * 4
    assert (found == 1).tolist() == ((ahead >= 8) & (ahead <= 64)).tolist()
    assert (found == 0).tolist() == (ahead >= 128).tolist()
    assert (warning.labels(None, 10) == 0).all()


def test_features_of_a_step_know_nothing_of_later_ones():
    rng = np.random.default_rng(0)
    metrics = {name: rng.random(40) + 0.1 for name in warning.LEVELS}
    changed = {name: np.where(np.arange(40) > 20, 9.0, m) for name, m in metrics.items()}
    before, after = warning.features(metrics, 256), warning.features(changed, 256)
    for name in before:
        assert before[name][:21] == pytest.approx(after[name][:21], nan_ok=True), name


def test_a_jump_is_measured_against_the_median_of_the_steps_before():
    level = np.array([1.0, 3.0, np.nan, 2.0, *np.arange(30.0)])
    metrics = dict.fromkeys(warning.LEVELS, level)
    jump = warning.features(metrics, 256)["pareto_k.jump"]
    assert np.isnan(jump[[0, 2]]).all()
    assert jump[[1, 3]].tolist() == [2.0, 0.0]
    assert jump[33] == 29 - np.median(level[17:33])


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    score = np.array([3.0, 1.0, 2.0, 0.0, np.nan, 1.0])
    label = np.array([1, 1, 0, 0, 0, -1], np.int8)
    # 3 beats all three; 1 beats 0 and the missing score, not 2.
    assert warning.auc(score, label) == pytest.approx(5 / 6)


def test_a_score_that_knows_nothing_has_an_area_of_a_half_inside_its_interval():
    rng = np.random.default_rng(1)
    run = np.repeat(np.arange(40), 50)
    label = np.repeat(rng.integers(0, 2, 40), 50).astype(np.int8)
    score = rng.normal(size=2000)
    low, high = warning.auc_interval(score, label, run, rng, draws=200)
    assert low < 0.5 < high
    assert low > 0.4
    assert high < 0.6


def test_the_roc_runs_from_nothing_to_everything_and_holds_the_area():
    rng = np.random.default_rng(4)
    label = (rng.random(5000) < 0.2).astype(np.int8)
    score = rng.normal(size=5000) + 1.5 * label
    false, true = (np.array(shares) for shares in warning.roc(score, label))
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    assert (np.diff(false) >= 0).all()
    assert (np.diff(true) >= 0).all()
    assert np.trapezoid(true, false) == pytest.approx(warning.auc(score, label), abs=0.01)


def test_the_interval_is_that_of_drawing_runs_and_computing_the_area_anew():
    rng = np.random.default_rng(5)
    run = np.repeat(np.arange(12), 20)
    label = np.where(run % 3 == 0, rng.integers(-1, 2, 240), 0).astype(np.int8)
    score = np.round(rng.normal(size=240) + (label == 1), 1)
    score[::30] = np.nan
    areas = []
    for _ in range(4000):
        chosen = np.concatenate([np.flatnonzero(run == i) for i in rng.integers(0, 12, 12)])
        areas.append(warning.auc(score[chosen], label[chosen]))
    expected = np.nanquantile(areas, [0.025, 0.975])
    found = warning.auc_interval(score, label, run, rng, draws=4000)
    assert found == pytest.approx(expected, abs=0.02)


def test_alarms_count_leads_and_false_alarms():
    early, late, calm, nervous = np.zeros((4, 30))
    early[10], late[19], nervous[5] = 1, 1, 1
    found = warning.alarms([early, late, calm, nervous], [20, 20, None, None], 0.5)
    assert (found.collapsed, found.warned, found.stable, found.false) == (2, 1, 2, 1)
    assert found.leads == (40,)


def test_a_threshold_keeps_to_its_rate_of_false_alarms():
    rng = np.random.default_rng(2)
    scores, onsets = list(rng.normal(size=(50, 80))), [None] * 50
    threshold = warning.threshold_for(scores, onsets, 0.1)
    assert warning.alarms(scores, onsets, threshold).false == 5


def test_a_share_of_nothing_is_anything():
    assert warning.share_interval(0, 0) == (0.0, 1.0)
    low, high = warning.share_interval(5, 10)
    assert low == pytest.approx(0.187, abs=1e-3)
    assert high == pytest.approx(0.813, abs=1e-3)


def test_the_logistic_rule_finds_the_direction_that_separates():
    rng = np.random.default_rng(3)
    columns = rng.normal(size=(2000, 3))
    columns[::50, 1] = np.nan
    label = (columns[:, 0] + 0.1 * rng.normal(size=2000) > 0).astype(np.int8)
    label[:100] = -1
    rule = warning.fit(columns, label)
    assert warning.auc(rule.score(columns), label) > 0.99
    assert abs(rule.weights[0]) > 5 * abs(rule.weights[1:3]).max()
