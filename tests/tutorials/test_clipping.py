"""What notebook 02 measures, on runs of a few steps."""

import numpy as np
import pytest

from m2po_lab.tutorials.lessons import clipping


@pytest.fixture(scope="module")
def run():
    return clipping.train_and_read("ppo", staleness=32, steps=12)


def test_every_token_of_the_run_is_in_one_batch(run):
    assert run.batch.shape == (12 * 256 * 10,)
    assert run.reward.shape == run.masked.shape == (12,)
    assert run.copies.mean() == 0.5
    assert sum(run.entropy_by_ratio["tokens"]) <= run.batch.shape[0]


def test_the_share_dropped_after_the_fact_is_the_one_the_run_measured(run):
    assert clipping.dropped(run, 0.2).share == pytest.approx(run.masked.mean())


def test_copies_and_sums_make_up_the_whole_and_a_wider_clip_drops_less(run):
    shares = [clipping.dropped(run, eps) for eps in (0.05, 0.2, 0.8)]
    for one in shares:
        assert (one.of_copies + one.of_sums) / 2 == pytest.approx(one.share)
    assert shares[0].share > shares[1].share > shares[2].share
    assert shares[1].of_sums > shares[1].of_copies


def test_weights_are_those_of_the_objective():
    ratios = np.array([0.5, 1.0, 1.5])
    assert clipping.gradient_weight(ratios, 1.0, "ppo") == pytest.approx([0.5, 1.0, 0.0])
    assert clipping.gradient_weight(ratios, -1.0, "ppo") == pytest.approx([0.0, 1.0, 1.5])


def test_side_by_side_runs_end_where_single_ones_do():
    curves = clipping.trained(clipping.starts(range(2)), "ppo", 0)
    assert 20 <= clipping.updates_to(curves) <= 80
    assert np.isnan(clipping.updates_to(curves, 1.1))
    assert curves.masked_fraction.mean() < 0.01
