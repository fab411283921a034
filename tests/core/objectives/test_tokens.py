"""The exponential that every ratio goes through."""

import numpy as np
import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import objective
from m2po_lab.core.objectives.tokens import RATIO_LIMIT, Tokens
from tests.conftest import load, to_numpy

UNBOUNDED = ["is", "ppo", "m2po"]
"""Objectives that keep a bad token whatever its ratio."""


def batch(d, xp=np):
    d = xp.asarray([d], dtype=xp.float64)
    return TokenBatch(current_logp=d, behavior_logp=d * 0, advantage=d[:, 0] * 0 - 1)


def test_up_to_the_limit_the_exponential_is_the_exponential():
    d = np.array([[-1e4, -1.0, 0.0, 5.0, RATIO_LIMIT]])
    tokens = Tokens(batch(d[0]), gradient=False)
    np.testing.assert_array_equal(tokens.exp(d, tokens.valid), np.exp(d))


@pytest.mark.parametrize("d", [RATIO_LIMIT + 1, 1e4, 1e300])
def test_beyond_the_limit_value_and_gradient_are_those_at_the_limit(d):
    torch = load("torch")
    leaf = torch.asarray([[d, 1.0]], dtype=torch.float64, requires_grad=True)
    tokens = Tokens(batch([d, 1.0], torch), gradient=False)
    value = tokens.exp(leaf, tokens.valid)
    value.sum().backward()
    expected = np.exp([[RATIO_LIMIT, 1.0]])
    np.testing.assert_allclose(to_numpy(value), expected, rtol=1e-14)
    np.testing.assert_allclose(to_numpy(leaf.grad), expected, rtol=1e-14)


def test_what_is_not_selected_has_neither_value_nor_gradient():
    torch = load("torch")
    leaf = torch.asarray([[1e4, float("inf"), float("nan"), 0.0]], dtype=torch.float64)
    leaf.requires_grad_(True)
    tokens = Tokens(batch([0.0] * 4, torch), gradient=False)
    value = tokens.exp(leaf, torch.asarray([[False, False, False, True]]))
    value.sum().backward()
    np.testing.assert_array_equal(to_numpy(value), [[0, 0, 0, 1]])
    np.testing.assert_array_equal(to_numpy(leaf.grad), [[0, 0, 0, 1]])


@pytest.mark.parametrize("name", UNBOUNDED)
@pytest.mark.parametrize("d", [1.0, RATIO_LIMIT, 1e4])
def test_loss_gradient_and_weight_of_a_kept_token_agree_on_both_sides_of_the_limit(name, d):
    torch, chosen = load("torch"), objective(name)
    tokens = batch([d, 0.0], torch)
    tokens.current_logp.requires_grad_(True)
    loss, _ = chosen.loss(tokens)
    loss.backward()
    ratio = np.exp(min(d, RATIO_LIMIT))
    np.testing.assert_allclose(to_numpy(chosen.weight(tokens)), [[ratio, 1.0]])
    np.testing.assert_allclose(to_numpy(tokens.current_logp.grad), [[ratio / 2, 0.5]])
    assert float(loss.detach()) == pytest.approx((ratio + 1) / 2)
