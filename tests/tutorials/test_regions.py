"""What notebook 05 compares."""

import numpy as np
import pytest

from m2po_lab.core import OBJECTIVES
from m2po_lab.tutorials.lessons import regions
from m2po_lab.tutorials.lessons.clipping import gradient_weight


@pytest.fixture(scope="module")
def batch():
    return regions.stale_batch(8)


def test_the_families_name_objectives_and_each_once():
    assert len(set(regions.NAMES)) == len(regions.NAMES)
    assert set(regions.NAMES) <= set(OBJECTIVES)


def test_the_batch_has_all_that_objectives_need(batch):
    assert batch.shape == (256, 10)
    assert set(regions.COLUMNS) <= set(batch.present())
    assert np.abs(batch.log_ratio("proximal/behavior")).max() > 0


def test_no_trust_region_drops_nothing_and_keeps_all_mass(batch):
    plain, clip, budget = regions.judge(batch, ("is", "ppo", "m2po"))
    assert (plain.dropped, plain.mass) == (0, 1)
    assert clip.dropped == pytest.approx(clip.gone.mean())
    assert np.all(clip.weight[clip.gone] == 0)
    assert budget.dropped <= clip.dropped


def test_corrections_are_shown_where_the_proximal_policy_is_the_current_one():
    ratios = np.array([0.4, 1.0, 3.0])
    assert gradient_weight(ratios, 1.0, "tis") == pytest.approx([0.4, 1, 2])
    assert gradient_weight(ratios, 1.0, "icepop") == pytest.approx([0, 1, 3])


def test_on_policy_no_objective_is_biased_and_importance_weights_least_at_the_end():
    found = regions.exact(("is", "ppo", "m2po"), lags=6)
    assert all(one.bias[0] < 1e-9 for one in found.values())
    assert found["is"].bias[-1] < found["m2po"].bias[-1] < found["ppo"].bias[-1]
    assert found["ppo"].spread[-1] < found["is"].spread[-1]
