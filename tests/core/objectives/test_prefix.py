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


def test_the_weight_is_the_clipped_product_of_the_token_ratio_and_the_smallest_before_it():
    r = np.array([[1.1, 0.9, 1.0, 0.8, 1.5], [1.5, 1.0, 0.5, 1.0, 1.0]])
    tokens = rows(np.log(r), [1.0, -1.0])
    chosen = objective("minpro", eps_low=0.2, eps_high=0.28)
    np.testing.assert_allclose(
        chosen.weight(tokens),
        [[1.1, 1.1 * 0.9, 0.9, 0.8, 0.8 * 1.5], [1.28, 1.28, 0.8, 0.8, 0.8]],
    )
    assert chosen.keep(tokens).all()


def test_the_other_readings_drop_tokens_by_the_product_or_by_their_own_ratio():
    r = np.array([[0.5, 1.0, 1.5], [0.5, 1.0, 1.5]])
    tokens = rows(np.log(r), [1.0, -1.0])
    np.testing.assert_array_equal(
        objective("minpro", clip="token").keep(tokens), [[True, True, False], [False, True, True]]
    )
    np.testing.assert_array_equal(
        objective("minpro", clip="product").keep(tokens),
        [[True, True, True], [False, False, False]],
    )
    product = objective("minpro", clip="product", eps_low=1.0, eps_high=1e9)
    np.testing.assert_allclose(product.weight(tokens), [[0.5, 0.5, 0.75]] * 2)


def test_a_token_clipped_by_its_own_ratio_pays_its_bound_times_the_prefix_minimum():
    tokens = rows(np.log([[0.5, 2.0]]), [1.0])
    chosen = objective("minpro", clip="token", eps_high=0.28)
    loss = chosen.token_loss(tokens, chosen.keep(tokens))
    np.testing.assert_allclose(loss, [[-0.5, -1.28 * 0.5]])


@pytest.mark.parametrize("clip", ["weight", "token", "product"])
def test_no_gradient_flows_into_the_prefix(clip):
    torch = load("torch")
    values = {
        "current_logp": np.log([[0.9, 1.1]]),
        "behavior_logp": np.zeros((1, 2)),
        "advantage": np.array([[0.0, 1.0]]),
    }
    tokens = batch(values, torch, gradient=True)
    objective("minpro", clip=clip).loss(tokens)[0].backward()
    np.testing.assert_allclose(to_numpy(tokens.current_logp.grad), [[0, -0.9 * 1.1 / 2]])


@pytest.mark.parametrize(
    ("clip", "other"), [("weight", "cispo"), ("token", "ppo"), ("product", "ppo")]
)
def test_on_rows_of_one_token_minpro_is_cispo_or_ppo(clip, other):
    values = {k: v[:, :1] for k, v in columns(spread=1.0).items()}
    bounds = {"eps_low": 0.2, "eps_high": 0.28}
    one, two = objective("minpro", clip=clip, **bounds), objective(other, **bounds)
    assert float(one.loss(batch(values))[0]) == float(two.loss(batch(values))[0])
