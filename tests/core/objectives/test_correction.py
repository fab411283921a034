"""Truncated, masked and decoupled corrections by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import objective
from tests.core.objectives.conftest import batch, columns


def three(b, rho, advantage):
    """Rows with the given b = proximal/behavior and rho = current/proximal, (B, T) each."""
    b, rho = np.asarray(b, dtype=float), np.asarray(rho, dtype=float)
    behavior = np.full(b.shape, -2.0)
    proximal = behavior + np.log(b)
    return TokenBatch(
        behavior_logp=behavior,
        proximal_logp=proximal,
        current_logp=proximal + np.log(rho),
        advantage=np.asarray(advantage, dtype=float),
    )


TOKENS = three([[0.4, 3.0, 1.0, 6.0]], [[1.0, 1.1, 1.5, 0.9]], [1.0])
"""b and rho of four tokens with A = 1: the third is beyond PPO's upper bound."""


def test_tis_multiplies_ppo_on_rho_by_the_truncated_correction():
    chosen = objective("tis", cap=2.0)
    np.testing.assert_array_equal(chosen.keep(TOKENS), [[True, True, False, True]])
    np.testing.assert_allclose(chosen.weight(TOKENS), [[0.4, 2 * 1.1, 0, 2 * 0.9]])
    loss = chosen.token_loss(TOKENS, chosen.keep(TOKENS))
    np.testing.assert_allclose(loss, [[-0.4, -2.2, -1.2, -1.8]])


def test_tis_without_a_proximal_policy_truncates_the_whole_ratio():
    chosen = objective("tis", cap=2.0, proximal=False)
    np.testing.assert_allclose(chosen.weight(TOKENS), [[0.4, 2.0, 1.5, 2.0]])
    assert chosen.needs == ("current_logp", "behavior_logp", "advantage")
    assert "proximal_logp" in objective("tis").needs


def test_the_sequence_correction_is_the_truncated_product():
    tokens = three([[2.0, 3.0], [0.5, 0.5]], np.ones((2, 2)), [1.0, 1.0])
    np.testing.assert_allclose(
        objective("tis_sequence", cap=4.0).weight(tokens), [[4, 4], [0.25, 0.25]]
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_an_unlimited_sequence_correction_is_the_product_however_long(seed):
    tokens = batch(columns(seed, spread=0.2))
    product = np.exp(tokens.row_sum(tokens.log_ratio()))
    weight = objective("tis_sequence", cap=np.inf, proximal=False).weight(tokens)
    np.testing.assert_allclose(weight, np.where(tokens.keep, product[:, None], 0), rtol=1e-12)


def test_icepop_drops_corrections_outside_its_bounds_and_keeps_the_denominator():
    chosen = objective("icepop", low=0.5, high=5.0)
    np.testing.assert_array_equal(chosen.keep(TOKENS), [[False, True, False, False]])
    np.testing.assert_allclose(chosen.weight(TOKENS), [[0, 3 * 1.1, 0, 0]])
    loss = chosen.token_loss(TOKENS, chosen.keep(TOKENS))
    np.testing.assert_allclose(loss, [[0, -3.3, -1.2, 0]])
    assert float(chosen.divisor(TOKENS)) == 4


def test_decoupled_ppo_rejects_or_cuts_beyond_the_cap_and_keeps_the_denominator():
    masked = objective("decoupled_ppo", cap=5.0)
    np.testing.assert_allclose(masked.weight(TOKENS), [[0.4, 3.3, 0, 0]])
    np.testing.assert_allclose(
        masked.token_loss(TOKENS, masked.keep(TOKENS)), [[-0.4, -3.3, -1.2, 0]]
    )
    clamped = objective("decoupled_ppo", cap=5.0, action="clamp")
    np.testing.assert_allclose(clamped.weight(TOKENS), [[0.4, 3.3, 0, 4.5]])
    assert float(masked.divisor(TOKENS)) == float(clamped.divisor(TOKENS)) == 4


def test_decoupled_ppo_without_rejection_applies_no_correction_at_all():
    plain = objective("decoupled_ppo", action="none")
    ppo = objective("ppo")
    on_rho = TokenBatch(
        current_logp=TOKENS.current_logp,
        behavior_logp=TOKENS.proximal_logp,
        advantage=TOKENS.advantage,
    )
    assert float(plain.loss(TOKENS)[0]) == float(ppo.loss(on_rho)[0])
    uncapped = objective("decoupled_ppo", cap=np.inf)
    np.testing.assert_allclose(uncapped.weight(TOKENS), [[0.4, 3.3, 0, 5.4]])


def test_where_proximal_and_behavior_agree_every_correction_of_ppo_is_ppo():
    values = columns(spread=0.4)
    tokens = batch({**values, "proximal_logp": values["behavior_logp"]})
    ppo = objective("ppo").gradient(tokens)
    for name in ("tis", "tis_sequence", "icepop", "mis", "decoupled_ppo"):
        np.testing.assert_allclose(objective(name).gradient(tokens), ppo, atol=1e-14, err_msg=name)


def test_topr_imitates_good_tokens_and_tapers_bad_ones():
    tokens = three([[0.4, 3.0], [0.4, 3.0]], np.ones((2, 2)), [1.0, -1.0])
    np.testing.assert_allclose(objective("topr").weight(tokens), [[1, 1], [0.4, 1]])
    np.testing.assert_allclose(objective("topr", level="sequence").weight(tokens), [[1, 1], [1, 1]])


def test_a_cap_of_nothing_is_refused():
    with pytest.raises(ValueError, match="tis: cap=0: pass a number above 0"):
        objective("tis", cap=0)
