"""GSPO, GMPO and VESPO by hand on rows of two tokens, and where they agree with others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import objective
from tests.conftest import load, to_numpy
from tests.core.objectives.conftest import batch, columns

LOG2 = np.log(2.0)


def rows(d, advantage, keep=None):
    """A batch with the given log-ratios (B, T) and advantages (B,) or (B, T)."""
    d = np.asarray(d, dtype=float)
    behavior = np.full_like(d, -9.0)
    return TokenBatch(
        current_logp=behavior + d,
        behavior_logp=behavior,
        advantage=np.asarray(advantage),
        keep=keep,
    )


def gradient(chosen, tokens):
    return -chosen.gradient(tokens) / chosen.divisor(tokens)


@pytest.mark.parametrize("name", ["gspo", "gspo_token"])
def test_the_gspo_ratio_is_the_geometric_mean_of_the_token_ratios(name):
    tokens = rows([[LOG2, -LOG2], [LOG2, LOG2]], [1.0, -1.0])
    weight = objective(name, eps_low=0.2, eps_high=0.2).weight(tokens)
    np.testing.assert_allclose(weight, [[1, 1], [2, 2]])


@pytest.mark.parametrize("name", ["gspo", "gspo_token"])
def test_gspo_drops_whole_rows_past_the_bound_their_advantage_pushes_to(name):
    d = np.array([[0.3, 0.3], [0.3, 0.3], [-0.3, -0.3], [-0.3, -0.3]])
    keep = objective(name, eps_low=0.2, eps_high=0.2).keep(rows(d, [1.0, -1.0, 1.0, -1.0]))
    np.testing.assert_array_equal(keep.all(axis=1), [False, True, True, False])
    np.testing.assert_array_equal(keep.any(axis=1), keep.all(axis=1))


def test_gspo_averages_over_rows_then_over_their_tokens():
    keep = np.array([[True, True, True], [True, False, False]])
    chosen = objective("gspo", "sequence_mean_token_mean", eps_low=0.2, eps_high=0.2)
    tokens = rows([[0.1, 0.0, -0.1], [0.1, 7, 7]], [1.0, 2.0], keep)
    loss, _ = chosen.loss(tokens)
    assert float(loss) == pytest.approx(-(1.0 + 2 * np.exp(0.1)) / 2)
    expected = [[-1 / 6] * 3, [-2 * np.exp(0.1) / 2, 0, 0]]
    np.testing.assert_allclose(gradient(chosen, tokens), expected)


def test_gspo_takes_the_mean_advantage_of_a_row_and_gspo_token_each_tokens_own():
    torch = load("torch")
    values = {
        "current_logp": np.array([[-1.0, -2.0, -3.0]]),
        "behavior_logp": np.array([[-1.1, -2.0, -2.9]]),
        "advantage": np.array([[1.0, -0.5, 0.1]]),
    }
    for name, expected in (("gspo", [0.2, 0.2, 0.2]), ("gspo_token", [1.0, -0.5, 0.1])):
        tokens = batch(values, torch, gradient=True)
        chosen = objective(name, eps_low=0.2, eps_high=0.2)
        chosen.loss(tokens)[0].backward()
        np.testing.assert_allclose(
            to_numpy(tokens.current_logp.grad), -np.array([expected]) / 3, rtol=1e-12
        )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), eps=st.floats(1e-4, 0.9))
def test_with_one_advantage_a_row_gspo_and_gspo_token_have_one_gradient(seed, eps):
    tokens = batch(columns(seed))
    both = [objective(n, eps_low=eps, eps_high=eps) for n in ("gspo", "gspo_token")]
    np.testing.assert_allclose(
        both[0].gradient(tokens), both[1].gradient(tokens), rtol=1e-9, atol=1e-12
    )


def test_gspo_on_rows_of_one_token_is_ppo():
    values = {k: v[:, :1] for k, v in columns(spread=1.0).items()}
    ppo, gspo = (objective(n, eps_low=0.2, eps_high=0.3) for n in ("ppo", "gspo"))
    np.testing.assert_array_equal(ppo.keep(batch(values)), gspo.keep(batch(values)))
    assert float(ppo.loss(batch(values))[0]) == pytest.approx(float(gspo.loss(batch(values))[0]))


def test_gmpo_averages_clipped_log_ratios_and_a_clipped_token_has_no_gradient():
    tokens = rows([[0.9, 0.2], [0.9, 0.2], [-0.9, 0.2]], [1.0, -1.0, -1.0])
    chosen = objective("gmpo", "sequence_mean", eps_low=0.4, eps_high=0.4)
    keep = [[False, True], [True, True], [False, True]]
    np.testing.assert_array_equal(chosen.keep(tokens), keep)
    ratio = np.exp([(0.4 + 0.2) / 2, (0.9 + 0.2) / 2, (-0.4 + 0.2) / 2])
    np.testing.assert_allclose(chosen.weight(tokens), np.where(keep, ratio[:, None], 0))
    assert float(chosen.loss(tokens)[0]) == pytest.approx(-(ratio[0] - ratio[1] - ratio[2]) / 3)
    np.testing.assert_allclose(
        gradient(chosen, tokens),
        -np.where(keep, ratio[:, None], 0) * [[1], [-1], [-1]] / (3 * 2),
    )


def test_gmpo_with_wide_clips_is_gspo_with_wide_clips():
    tokens = batch(columns(3))
    gmpo = objective("gmpo", eps_low=50.0, eps_high=50.0)
    gspo = objective("gspo", eps_low=1.0, eps_high=1e9)
    np.testing.assert_allclose(gmpo.gradient(tokens), gspo.gradient(tokens), rtol=1e-9, atol=1e-12)


def test_gmpo_with_token_advantages_differentiates_its_own_loss():
    torch = load("torch")
    values = columns(5)
    values["advantage"] = np.random.default_rng(0).normal(size=values["keep"].shape)
    values["advantage"][0, 2] = 0.0
    chosen = objective("gmpo", "sequence_mean", eps_low=0.2, eps_high=0.2)
    tokens = batch(values, torch, gradient=True)
    chosen.loss(tokens)[0].backward()
    np.testing.assert_allclose(
        to_numpy(tokens.current_logp.grad), gradient(chosen, batch(values)), atol=1e-14
    )
    assert to_numpy(tokens.current_logp.grad)[0, 2] == 0


def test_the_vespo_weight_is_a_gamma_curve_of_the_product_with_its_top_at_k_over_lambda():
    products = np.array([0.25, 2 / 3, 1.0, 4.0])
    tokens = rows(np.stack([np.log(products), np.zeros(4)], axis=1), [1.0, 1.0, -1.0, -1.0])
    weight = objective("vespo").weight(tokens)
    expected = [
        np.exp(3) * 0.25**2 * np.exp(-3 * 0.25),
        np.exp(3) * (2 / 3) ** 2 * np.exp(-2),
        1.0,
        np.exp(2) * 4.0**3 * np.exp(-8),
    ]
    np.testing.assert_allclose(weight, np.array(expected)[:, None] * np.ones(2))
    grid = np.linspace(0.05, 6, 2000)
    curve = objective("vespo").weight(rows(np.log(grid)[:, None], np.ones(2000)))[:, 0]
    assert grid[curve.argmax()] == pytest.approx(2 / 3, abs=0.01)


def test_the_vespo_weight_vanishes_on_both_sides_without_overflow():
    tokens = rows([[-1e4, 0.0], [1e4, 0.0], [500.0, 300.0]], [1.0, -1.0, 1.0])
    np.testing.assert_array_equal(objective("vespo").weight(tokens), 0)
