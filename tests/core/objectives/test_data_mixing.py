"""ReMix: PPO per token, and what its penalty adds."""

import numpy as np
import pytest

from m2po_lab.core.objectives import objective
from tests.core.objectives.conftest import batch, columns


def test_without_a_penalty_remix_is_ppo_on_whatever_mixture_it_is_given():
    tokens = batch(columns(spread=1.0))
    remix, ppo = objective("remix"), objective("ppo")
    np.testing.assert_array_equal(remix.keep(tokens), ppo.keep(tokens))
    assert float(remix.loss(tokens)[0]) == float(ppo.loss(tokens)[0])
    assert "proximal_logp" not in remix.needs


def test_the_penalty_is_the_unbiased_estimate_of_the_divergence_from_the_preceding_policy():
    tokens = batch(columns())
    remix, ppo = objective("remix", kl_coef=0.1), objective("ppo")
    back = -tokens.log_ratio("current/proximal")[tokens.keep]
    extra = float(remix.loss(tokens)[0]) - float(ppo.loss(tokens)[0])
    assert extra == pytest.approx(0.1 * np.mean(np.exp(back) - 1 - back))
    assert extra > 0
    assert "proximal_logp" in remix.needs
