"""DRO, Kimi, CISPO, SAPO, MASPO and R2VPO by hand."""

import numpy as np
import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import objective
from tests.core.objectives.conftest import batch, columns


def token(ratio, advantage, behavior=-1.0):
    """A batch of single tokens with the given ratios, advantages and behavior log-probs."""
    ratio, advantage, behavior = (
        np.atleast_1d(np.asarray(v, dtype=float)) for v in (ratio, advantage, behavior)
    )
    old = behavior * np.ones_like(ratio)
    return TokenBatch(
        current_logp=(old + np.log(ratio))[:, None],
        behavior_logp=old[:, None],
        advantage=advantage * np.ones_like(ratio),
    )


@pytest.mark.parametrize(("name", "strength"), [("dro", "beta"), ("kimi", "tau")])
def test_the_pull_adds_a_quadratic_of_the_log_ratio_whatever_the_advantage(name, strength):
    chosen = objective(name, **{strength: 0.5})
    tokens = token([np.e, np.e, 1 / np.e], [2.0, 0.0, -1.0], behavior=-3.0)
    loss = chosen.token_loss(tokens, chosen.keep(tokens))[:, 0]
    np.testing.assert_allclose(loss, [2 * 2 + 0.25, 0.25, -1 * 4 + 0.25])
    np.testing.assert_allclose(chosen.gradient(tokens)[:, 0], [2 - 0.5, -0.5, -1 + 0.5])


def test_a_pull_of_zero_is_reinforce():
    tokens = batch(columns())
    plain = objective("reinforce").gradient(tokens)
    np.testing.assert_array_equal(objective("dro", beta=0.0).gradient(tokens), plain)


def test_cispo_bounds_the_weight_and_drops_no_token():
    tokens = token([0.1, 0.9, 1.1, 9.0], 1.0)
    chosen = objective("cispo", eps_low=0.2, eps_high=0.3)
    np.testing.assert_allclose(chosen.weight(tokens)[:, 0], [0.8, 0.9, 1.1, 1.3])
    assert chosen.keep(tokens).all()
    np.testing.assert_allclose(
        objective("cispo", eps_low=1.0, eps_high=4.0).weight(tokens)[:, 0], [0.1, 0.9, 1.1, 5.0]
    )


def test_sapo_gates_with_a_sigmoid_whose_temperature_follows_the_sign_of_a():
    ratio = np.array([0.5, 2.0, 0.5, 2.0])
    advantage = np.array([1.0, 1.0, -1.0, -1.0])
    tau = np.array([2.0, 2.0, 3.0, 3.0])
    gate = 1 / (1 + np.exp(-tau * (ratio - 1)))
    chosen = objective("sapo", tau_pos=2.0, tau_neg=3.0)
    tokens = token(ratio, advantage)
    np.testing.assert_allclose(chosen.weight(tokens)[:, 0], 4 * gate * (1 - gate) * ratio)
    loss = chosen.token_loss(tokens, chosen.keep(tokens))[:, 0]
    np.testing.assert_allclose(loss, -4 / tau * gate * advantage)


def test_the_sapo_weight_vanishes_for_huge_ratios():
    assert objective("sapo").weight(token([1e9, 1e300], [1.0, -1.0])).max() == 0


def test_maspo_damps_trust_region_tokens_only_and_rare_ones_less():
    chosen = objective("maspo", sigma=1.0, alpha=0.5, beta=0.1)
    ratio = np.array([2.0, 0.5, 2.0, 0.5])
    advantage = np.array([1.0, 1.0, -2.0, -2.0])
    weight = chosen.weight(token(ratio, advantage, behavior=np.log(0.25)))[:, 0]
    up, down = 2.0 * 1.1, 2.0 / 1.2
    expected = [
        2 * np.exp(-1 / (2 * up**2)),
        0.5,
        2.0,
        0.5 * np.exp(-(0.5**2) / (2 * down**2)),
    ]
    np.testing.assert_allclose(weight, expected)
    rare = chosen.weight(token(2.0, 1.0, behavior=-9.0))
    common = chosen.weight(token(2.0, 1.0, behavior=-0.1))
    assert common < rare < 2.0


def test_the_maspo_width_can_be_capped_as_in_the_official_code():
    rare = token(3.0, 1.0, behavior=-20.0)
    free = objective("maspo", alpha=0.5, beta=0.0).weight(rare)
    capped = objective("maspo", alpha=0.5, beta=0.0, sigma_max=10.0).weight(rare)
    assert capped == pytest.approx(3 * np.exp(-4 / (2 * 10.0**2)))
    assert capped < free


def test_r2vpo_pulls_the_ratio_back_and_reports_its_variance():
    chosen = objective("r2vpo", lam=0.25)
    tokens = token([2.0, 0.5], [1.0, 1.0])
    loss, diagnostics = chosen.loss(tokens)
    assert float(loss) == pytest.approx((-(2 - 0.25) - (0.5 - 0.25 * 0.25)) / 2)
    np.testing.assert_allclose(
        chosen.gradient(tokens)[:, 0], [2 - 0.5 * 2 * 1, 0.5 + 0.5 * 0.5 * 0.5]
    )
    assert float(diagnostics["ratio_variance"]) == pytest.approx((1 + 0.25) / 2)


def test_r2vpo_without_a_penalty_is_importance_sampling():
    tokens = batch(columns(spread=1.0))
    free = objective("r2vpo", lam=0.0)
    np.testing.assert_array_equal(free.gradient(tokens), objective("is").gradient(tokens))
