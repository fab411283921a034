"""How notebook 03 counts, on made-up curves; the runs themselves are tested in tests/toy."""

from dataclasses import replace

import numpy as np
import pytest

from m2po_lab.tutorials.lessons import collapse
from toy_envs.bandit_sweep import Curves


def curves(*rows):
    value = np.array(rows, dtype=float)
    updates = 4 * np.arange(value.shape[1])
    same = dict.fromkeys(("m2", "chi2", "ess_fraction", "gradient_norm"), np.zeros_like(value))
    return Curves(updates=updates, value=value, masked_fraction=np.zeros_like(value), **same)


def test_a_seed_has_fallen_if_it_was_above_and_is_below_later():
    rising, falling, low = [0.2, 0.5, 0.9], [0.2, 0.8, 0.5], [0.1, 0.2, 0.3]
    assert collapse.fallen(curves(rising)) == 0
    assert collapse.fallen(curves(falling)) == 1
    assert collapse.fallen(curves(low)) == 0
    assert collapse.fallen(curves(rising, falling, low, [0.2, 0.7, 0.7])) == 1


def test_peak_and_final_are_medians_over_seeds():
    found = curves([0.9] * 5 + [0.2] * 12, [0.5] * 5 + [0.4] * 12, [0.7] * 5 + [0.6] * 12)
    assert collapse.final(found) == pytest.approx(0.4)
    assert collapse.peak(found) == pytest.approx(0.7)


def test_late_is_from_update_256_on():
    found = curves([0.5] * 100)
    masked = (found.updates >= 256)[None].astype(float)
    assert collapse.masked_late(replace(found, masked_fraction=masked)) == 1
    assert collapse.masked_late(replace(found, masked_fraction=1 - masked)) == 0
