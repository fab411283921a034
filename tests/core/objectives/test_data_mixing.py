"""ReMix: PPO around where the step started, and what its penalty adds."""

import numpy as np
import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import objective
from tests.core.objectives.conftest import batch, columns


def three(b, rho, advantage):
    """One row with the given b = proximal/behavior and rho = current/proximal."""
    proximal = -2.0 + np.log([b])
    return TokenBatch(
        behavior_logp=np.full((1, len(b)), -2.0),
        proximal_logp=proximal,
        current_logp=proximal + np.log([rho]),
        advantage=np.array([advantage]),
    )


def test_on_fresh_data_remix_is_ppo():
    values = columns(spread=1.0)
    tokens = batch({**values, "proximal_logp": values["behavior_logp"]})
    remix, ppo = objective("remix"), objective("ppo")
    np.testing.assert_array_equal(remix.keep(tokens), ppo.keep(tokens))
    assert float(remix.loss(tokens)[0]) == pytest.approx(float(ppo.loss(tokens)[0]), rel=1e-14)


def test_an_old_response_may_move_as_far_from_where_the_step_started_as_a_fresh_one():
    # r = b rho is .45, .6, 2.2 and 2.3 beside the bounds b - .2 and b + .2
    tokens = three([0.5, 0.5, 2.1, 2.0], [0.9, 1.2, 2.2 / 2.1, 1.15], [1.0] * 4)
    remix, ppo = objective("remix"), objective("ppo")
    np.testing.assert_array_equal(remix.keep(tokens), [[True, True, True, False]])
    np.testing.assert_array_equal(ppo.keep(tokens), [[True, True, False, False]])
    bad = tokens.replace(advantage=-tokens.advantage)
    np.testing.assert_array_equal(remix.keep(bad), [[True, True, True, True]])
    np.testing.assert_array_equal(ppo.keep(bad), [[False, False, True, True]])


def test_a_clipped_token_pays_its_own_bound():
    tokens = three([2.0, 0.5], [1.5, 0.5], [1.0, -1.0])
    remix = objective("remix")
    keep = remix.keep(tokens)
    assert not keep.any()
    np.testing.assert_allclose(remix.token_loss(tokens, keep), [[-2.2, 0.3]])


def test_a_lower_bound_of_zero_or_less_drops_no_bad_token():
    tokens = three([0.1, 0.2], [1e-9, 1e-9], [-1.0, -1.0])
    assert objective("remix").keep(tokens).all()


def test_the_clip_follows_the_proximal_policy_however_far_it_is():
    tokens = three([1.0], [1.0], [1.0])
    far = tokens.replace(
        proximal_logp=tokens.proximal_logp + 1e4, current_logp=tokens.current_logp + 1e4
    )
    assert objective("remix").keep(far).all()


def test_around_one_remix_is_ppo_on_whatever_mixture_it_is_given():
    tokens = batch(columns(spread=1.0))
    remix, ppo = objective("remix", center="one"), objective("ppo")
    np.testing.assert_array_equal(remix.keep(tokens), ppo.keep(tokens))
    assert float(remix.loss(tokens)[0]) == float(ppo.loss(tokens)[0])
    assert "proximal_logp" not in remix.needs
    assert "proximal_logp" in objective("remix").needs


def test_the_penalty_is_the_unbiased_estimate_of_the_divergence_from_the_proximal_policy():
    tokens = batch(columns())
    remix, ppo = objective("remix", center="one", kl_coef=0.1), objective("ppo")
    back = -tokens.log_ratio("current/proximal")[tokens.keep]
    extra = float(remix.loss(tokens)[0]) - float(ppo.loss(tokens)[0])
    assert extra == pytest.approx(0.1 * np.mean(np.exp(back) - 1 - back))
    assert extra > 0
    assert "proximal_logp" in remix.needs
