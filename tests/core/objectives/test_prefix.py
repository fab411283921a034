"""MinPRO: the smallest ratio before a token."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import objective
from m2po_lab.core.objectives.prefix import prefix_minimum
from m2po_lab.core.objectives.tokens import Tokens
from tests.conftest import load, to_numpy
from tests.core.objectives.conftest import batch, columns, ragged


def rows(d, advantage, keep=None):
    d = np.asarray(d, dtype=float)
    return TokenBatch(
        current_logp=d, behavior_logp=np.zeros_like(d), advantage=np.asarray(advantage), keep=keep
    )


def by_hand(d, keep):
    """log min_{j<t} r_j over valid tokens, 0 for a first one; a loop."""
    out = np.zeros_like(d)
    for i, row in enumerate(d):
        for t in range(len(row)):
            before = [row[j] for j in range(t) if keep[i, j]]
            out[i, t] = min(before) if before else 0.0
    return out


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), width=st.integers(1, 17))
def test_the_prefix_minimum_is_that_of_a_loop(seed, width):
    rng = np.random.default_rng(seed)
    d, keep = rng.normal(size=(3, width)), rng.random((3, width)) < 0.7
    tokens = Tokens(rows(d, np.ones(3), keep), gradient=False)
    np.testing.assert_array_equal(
        np.where(keep, prefix_minimum(tokens, d), 0), np.where(keep, by_hand(d, keep), 0)
    )


def test_the_prefix_minimum_stops_at_the_end_of_a_row_in_the_ragged_layout():
    values = columns(2)
    padded, flat = batch(values), ragged(values)
    low = [prefix_minimum(Tokens(b, gradient=False), b.log_ratio()) for b in (padded, flat)]
    np.testing.assert_array_equal(low[0][padded.keep], low[1])


def test_the_weight_is_the_token_ratio_times_the_smallest_before_it():
    r = np.array([[1.1, 0.5, 1.0, 0.9]])
    tokens = rows(np.log(r), [1.0])
    np.testing.assert_allclose(
        objective("minpro").weight(tokens), [[1.1, 0.5 * 1.1, 1.0 * 0.5, 0.9 * 0.5]]
    )


def test_the_default_clips_the_token_ratio_and_the_other_reading_the_product():
    r = np.array([[0.5, 1.0, 1.5], [0.5, 1.0, 1.5]])
    tokens = rows(np.log(r), [1.0, -1.0])
    np.testing.assert_array_equal(
        objective("minpro").keep(tokens), [[True, True, False], [False, True, True]]
    )
    np.testing.assert_array_equal(
        objective("minpro", clip_on="product").keep(tokens),
        [[True, True, True], [False, False, False]],
    )


def test_a_clipped_token_pays_its_bound_times_the_prefix_minimum():
    tokens = rows(np.log([[0.5, 2.0]]), [1.0])
    chosen = objective("minpro", eps_high=0.28)
    loss = chosen.token_loss(tokens, chosen.keep(tokens))
    np.testing.assert_allclose(loss, [[-0.5, -1.28 * 0.5]])


def test_no_gradient_flows_into_the_prefix():
    torch = load("torch")
    values = {
        "current_logp": np.log([[0.9, 1.1]]),
        "behavior_logp": np.zeros((1, 2)),
        "advantage": np.array([[0.0, 1.0]]),
    }
    tokens = batch(values, torch, gradient=True)
    objective("minpro").loss(tokens)[0].backward()
    np.testing.assert_allclose(to_numpy(tokens.current_logp.grad), [[0, -0.9 * 1.1 / 2]])


@pytest.mark.parametrize("clip_on", ["token", "product"])
def test_on_rows_of_one_token_minpro_is_ppo(clip_on):
    values = {k: v[:, :1] for k, v in columns(spread=1.0).items()}
    ppo = objective("ppo", eps_low=0.2, eps_high=0.28)
    minpro = objective("minpro", clip_on=clip_on)
    assert float(minpro.loss(batch(values))[0]) == float(ppo.loss(batch(values))[0])
