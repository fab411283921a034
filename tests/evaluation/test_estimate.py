"""avg@k and pass@k are exact, and intervals hold the truth as often as they claim."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from full_scale.evaluation import estimate
from full_scale.evaluation.estimate import average, mean_of_sets, over_problems, pass_at


@st.composite
def problems(draw):
    samples = draw(st.integers(1, 8))
    right = draw(st.lists(st.integers(0, samples), min_size=1, max_size=12))
    return np.array(right), np.full(len(right), samples)


def test_known_answers_give_known_numbers():
    right, samples = np.array([4, 0, 1, 2]), np.full(4, 4)
    assert average(right, samples).mean() == 7 / 16
    assert pass_at(right, samples, 1).mean() == 7 / 16
    assert pass_at(right, samples, 2).tolist() == [1, 0, 1 - 3 / 6, 1 - 1 / 6]
    assert pass_at(right, samples, 4).tolist() == [1, 0, 1, 1]


@given(problems(), st.data())
def test_pass_at_k_is_the_share_of_choices_of_k_that_hold_a_right_one(counts, data):
    right, samples = counts
    k = data.draw(st.integers(1, int(samples[0])))
    for r, n, value in zip(right, samples, pass_at(right, samples, k), strict=True):
        choices = list(combinations([True] * r + [False] * (n - r), k))
        assert value == pytest.approx(sum(map(any, choices)) / len(choices), abs=1e-12)


@given(problems())
def test_pass_at_1_is_the_average_and_more_samples_never_hurt(counts):
    right, samples = counts
    passes = [pass_at(right, samples, k).mean() for k in range(1, int(samples[0]) + 1)]
    assert passes[0] == pytest.approx(average(right, samples).mean())
    assert all(a <= b + 1e-12 for a, b in pairwise(passes))


@pytest.mark.parametrize("k", [0, 5])
def test_pass_at_more_than_there_are_samples_is_refused(k):
    with pytest.raises(ValueError, match=r"pass@\d needs at least \d samples"):
        pass_at([1], [4], k)


def test_pass_at_k_is_unbiased():
    rng = np.random.default_rng(0)
    right = rng.binomial(16, 0.1, 200_000)
    truth = 1 - 0.9**4
    assert pass_at(right, np.full(right.shape, 16), 4).mean() == pytest.approx(truth, abs=0.002)


@given(problems())
def test_an_interval_holds_the_mean_and_stays_in_the_unit_interval(counts):
    value, low, high = over_problems(average(*counts))
    assert 0 <= low <= value + 1e-9
    assert value - 1e-9 <= high <= 1
    assert low < high


@pytest.mark.parametrize(("right", "n"), [(0, 30), (3, 30), (30, 30), (17, 40)])
def test_for_values_of_0_and_1_it_is_the_interval_of_clopper_and_pearson(right, n):
    _, low, high = over_problems(np.array([1.0] * right + [0.0] * (n - right)))
    exact_low = beta.ppf(0.025, right, n - right + 1) if right else 0
    exact_high = beta.ppf(0.975, right + 1, n - right) if right < n else 1
    assert (low, high) == pytest.approx((exact_low, exact_high), abs=0.004)


def test_the_same_values_give_the_same_interval_in_any_order():
    values = np.random.default_rng(0).random(50)
    assert over_problems(values) == over_problems(values[::-1])


def test_the_mean_of_sets_weights_sets_and_not_problems():
    few, many = np.array([1.0, 0.0]), np.zeros(100)
    assert mean_of_sets([few, many]).value == 0.25
    assert all(map(math.isnan, mean_of_sets([few, np.array([])])))
    assert all(map(math.isnan, mean_of_sets([])))


SIMULATED = {
    "AIME, hardly solved": (30, 16, 0.05, 2.0, None),
    "AIME, some solved": (30, 16, 0.2, 0.8, None),
    "AIME, pass@4": (30, 16, 0.3, 0.7, 4),
    "AMC": (40, 4, 0.6, 0.4, None),
    "Minerva": (272, 4, 0.3, 0.5, None),
    "Math500": (500, 4, 0.8, 0.2, None),
}
"""Problems, samples, two parameters of how hard problems are, k of pass@k."""


@pytest.mark.parametrize("name", SIMULATED)
def test_intervals_cover_the_truth_in_95_of_100_simulated_cases(name, monkeypatch):
    monkeypatch.setattr(estimate, "DRAWS", 2000)
    n, samples, a, b, k = SIMULATED[name]
    rng = np.random.default_rng(7)
    solved = np.arange(k or 1)
    truth = 1 - np.prod((b + solved) / (a + b + solved))
    cases, hits = 500, 0
    for _ in range(cases):
        right = rng.binomial(samples, rng.beta(a, b, n))
        total = np.full(n, samples)
        found = over_problems(average(right, total) if k is None else pass_at(right, total, k))
        hits += found.low <= truth <= found.high
    noise = 2.6 * math.sqrt(0.95 * 0.05 / cases)
    assert hits / cases >= 0.95 - noise


def test_the_interval_of_the_mean_over_eight_sets_covers_too(monkeypatch):
    monkeypatch.setattr(estimate, "DRAWS", 2000)
    rng = np.random.default_rng(8)
    sizes = (30, 30, 40, 45, 500, 385, 272, 674)
    hardness = rng.uniform(0.1, 0.9, (8, 2))
    truth = np.mean(hardness[:, 0] / hardness.sum(axis=1))
    cases, hits = 150, 0
    for _ in range(cases):
        sets = [
            average(rng.binomial(4, rng.beta(a, b, n)), np.full(n, 4))
            for n, (a, b) in zip(sizes, hardness, strict=True)
        ]
        found = mean_of_sets(sets)
        hits += found.low <= truth <= found.high
    assert hits / cases >= 0.95 - 2.6 * math.sqrt(0.95 * 0.05 / cases)
