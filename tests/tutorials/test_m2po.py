"""What notebook 04 shows, against the core."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m2po_lab.core import eligible, keep_m2po, objective
from m2po_lab.tutorials.exercises.m2po import batch_of
from m2po_lab.tutorials.lessons import m2po


def test_the_eight_tokens_tell_all_variants_and_the_clip_apart():
    batch = m2po.eight_tokens()
    names = ("m2po", "m2po_released", "m2po_areal", "m2po_all_tokens", "ppo")
    masks = {tuple(objective(name).keep(batch).ravel().tolist()) for name in names}
    assert len(masks) == len(names)


@given(st.lists(st.floats(-2, 2).map(lambda x: round(x, 3)), min_size=1, max_size=8, unique_by=abs))
def test_the_first_stage_within_the_budget_is_where_algorithm_1_stops(d):
    batch = batch_of([d], [1.0])
    names = tuple(map(str, range(len(d))))
    inside = int(eligible(batch).sum())
    stages = [m2po.stage(batch, names, k, 0.04) for k in range(inside + 1)]
    stop = next((s.dropped for s in stages if not s.mean > 0.04), inside)
    assert stop == int((~keep_m2po(batch, 0.04)).sum())


def test_one_threshold_for_all_micro_batches_drops_the_same_tokens_however_they_are_cut():
    counts = (1, 2, 8, 32)
    found = m2po.split(m2po.heavy_tails(), counts)
    alone = m2po.dropped_by(["m2po"], m2po.heavy_tails())["m2po"]
    assert found["one threshold for all"] == pytest.approx([alone] * 4)
    assert found["M2PO in each by itself"][0] == pytest.approx(alone)
    assert found["M2PO in each by itself"][-1] > 1.5 * alone


def test_parts_are_the_rows_in_their_order():
    batch = m2po.heavy_tails(rows=6)
    joined = np.concatenate([part.log_ratio() for part in m2po.parts(batch, 4)])
    assert np.array_equal(joined, batch.log_ratio())


def test_below_the_budget_m2po_drops_nothing_and_a_clip_does():
    drift, share = m2po.growing((0.05, 0.1, 0.3), ("ppo", "m2po"))
    assert drift[1] < 0.04 < drift[2]
    assert share["m2po"][:2] == [0, 0]
    assert share["ppo"][1] > 0.02
