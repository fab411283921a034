"""OPSM, MiniRL and DPPO by hand, and the trap of a recomputed old policy."""

import numpy as np
import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import objective
from m2po_lab.core.objectives.mask import binary_kl
from m2po_lab.core.objectives.tokens import Tokens
from tests.core.objectives.conftest import batch, columns


def probabilities(pi, mu, advantage):
    """Single tokens with the given current and behavior probabilities."""
    pi, mu = (np.asarray(v, dtype=float)[:, None] for v in (pi, mu))
    with np.errstate(divide="ignore"):
        return TokenBatch(
            current_logp=np.log(pi), behavior_logp=np.log(mu), advantage=np.asarray(advantage)
        )


def test_opsm_drops_bad_rows_that_fell_by_more_than_delta_on_average():
    d = np.array([[-0.15, -0.1], [-0.15, -0.1], [-0.05, -0.1], [0.15, 0.1]])
    tokens = TokenBatch(
        current_logp=d - 1,
        behavior_logp=np.full_like(d, -1.0),
        advantage=np.array([-1.0, 1.0, -1.0, -1.0]),
    )
    chosen = objective("opsm", delta=0.1)
    keep = chosen.keep(tokens)
    np.testing.assert_array_equal(keep.all(axis=1), [False, True, True, True])
    assert not keep[0].any()
    loss = chosen.token_loss(tokens, keep)
    np.testing.assert_array_equal(loss[0], 0)
    np.testing.assert_allclose(loss[1:], np.exp(d[1:]) * [[-1], [1], [1]])


def test_opsm_leaves_the_denominator_unless_told_otherwise():
    tokens = batch(columns(1, spread=1.0))
    valid, kept = (objective("opsm", delta=0.1, denominator=d) for d in ("valid", "kept"))
    rejected = (~kept.keep(tokens) & tokens.keep).any(axis=1) & ~kept.keep(tokens).any(axis=1)
    assert rejected.any()
    assert float(valid.divisor(tokens)) == tokens.keep.sum()
    assert float(kept.divisor(tokens)) == tokens.keep[~rejected].sum()


def test_opsm_does_nothing_when_the_old_policy_is_a_recompute_with_the_same_weights():
    values = columns(1, spread=2.0)
    tokens = batch({**values, "proximal_logp": values["current_logp"]})
    ppo = objective("ppo")
    recomputed = objective("opsm", delta=0.1, anchor="proximal")
    np.testing.assert_array_equal(recomputed.keep(tokens), ppo.keep(tokens))
    sampled = objective("opsm", delta=0.1)
    assert sampled.keep(tokens).sum() < ppo.keep(tokens).sum()
    assert "proximal_logp" in recomputed.needs
    assert "proximal_logp" not in sampled.needs


def test_minirl_masks_by_rho_weights_by_r_and_sums_over_a_row():
    behavior = np.full((1, 3), -2.0)
    proximal = behavior + np.log([[0.5, 4.0, 10.0]])
    tokens = TokenBatch(
        behavior_logp=behavior,
        proximal_logp=proximal,
        current_logp=proximal + np.log([[1.2, 1.3, 1.0]]),
        advantage=np.array([1.0]),
    )
    chosen = objective("minirl", "sequence_sum")
    np.testing.assert_array_equal(chosen.keep(tokens), [[True, False, True]])
    np.testing.assert_allclose(chosen.weight(tokens), [[0.6, 0, 5.0]])
    assert float(chosen.divisor(tokens)) == 1


def test_dppo_tv_looks_at_probability_mass_and_not_at_the_ratio():
    pi, mu = [0.30, 0.05, 0.60, 0.60], [0.10, 0.001, 0.80, 0.80]
    tokens = probabilities(pi, mu, [1.0, 1.0, -1.0, 1.0])
    chosen = objective("dppo_tv", delta=0.15)
    np.testing.assert_array_equal(chosen.keep(tokens)[:, 0], [False, True, False, True])
    np.testing.assert_allclose(chosen.weight(tokens)[:, 0], [0, 20.0, 0, 0.75])


def test_dppo_kl_is_the_divergence_of_token_against_rest_on_the_side_a_pushes():
    pi, mu = np.array([0.5, 0.5, 0.1, 0.1]), np.array([0.2, 0.2, 0.4, 0.4])
    tokens = probabilities(pi, mu, [1.0, -1.0, -1.0, 1.0])
    expected = mu * np.log(mu / pi) + (1 - mu) * np.log((1 - mu) / (1 - pi))
    np.testing.assert_allclose(binary_kl(Tokens(tokens, gradient=False))[:, 0], expected)
    keep = objective("dppo_kl", delta=0.1).keep(tokens)[:, 0]
    np.testing.assert_array_equal(keep, [False, True, False, True])


def test_the_binary_divergence_is_exact_at_the_ends():
    certain = probabilities([1.0, 1.0, 0.5], [1.0, 0.5, 1.0], [1.0, 1.0, 1.0])
    kl = binary_kl(Tokens(certain, gradient=False))[:, 0]
    np.testing.assert_allclose(kl, [0.0, np.inf, np.log(2)])


@pytest.mark.parametrize("name", ["dppo_tv", "dppo_kl"])
def test_the_lower_bound_may_differ_from_the_upper(name):
    tokens = probabilities([0.6, 0.4], [0.4, 0.6], [1.0, -1.0])
    both = objective(name, delta=1e-3).keep(tokens)
    np.testing.assert_array_equal(both[:, 0], [False, False])
    lower = objective(name, delta=1e-3, delta_low=0.9).keep(tokens)
    np.testing.assert_array_equal(lower[:, 0], [False, True])
