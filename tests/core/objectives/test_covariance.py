"""Clip-Cov and KL-Cov: which tokens, how many, and what happens to them."""

import numpy as np
import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import objective
from m2po_lab.core.objectives.covariance import clip_cov_candidates, covariance
from m2po_lab.core.objectives.tokens import Tokens
from tests.core.objectives.conftest import batch, columns
from tests.core.objectives.test_reference_values import VALUES, reference_columns

REFERENCE = VALUES["values"]["clip_cov"]
SETTING = {"fraction": 0.1, "cov_low": 0.2, "cov_high": 5.0}


def big(seed=0, rows=40, width=30):
    rng = np.random.default_rng(seed)
    shape = (rows, width)
    behavior = -np.abs(rng.normal(1, 1, shape))
    return TokenBatch(
        current_logp=behavior + rng.normal(0, 0.05, shape),
        behavior_logp=behavior,
        advantage=rng.normal(size=rows),
    )


def test_the_covariance_is_that_of_the_valid_tokens():
    tokens = batch(columns())
    adv, logp = tokens.advantage, tokens.current_logp
    keep = tokens.keep
    expected = (adv - adv[keep].mean()) * (logp - logp[keep].mean())
    found = covariance(Tokens(tokens, gradient=False))
    np.testing.assert_allclose(found[keep], expected[keep])


def test_clip_cov_draws_as_many_of_the_candidates_as_the_public_implementation_does():
    tokens, chosen = batch(reference_columns()), objective("clip_cov", **SETTING)
    candidates = clip_cov_candidates(Tokens(tokens, gradient=False), chosen.params)
    clipped = tokens.keep & ~objective("ppo").keep(tokens)
    drawn = tokens.keep & ~chosen.keep(tokens) & ~clipped
    gradient = np.array(REFERENCE["grad"])
    theirs = tokens.keep & (tokens.advantage != 0) & (gradient == 0) & ~clipped
    assert drawn.sum() == theirs.sum() == 3
    assert candidates[drawn].all()
    assert candidates[theirs].all()
    alike = ~(drawn | theirs)
    ours = -chosen.gradient(tokens) / chosen.divisor(tokens)
    np.testing.assert_allclose(ours[alike], gradient[alike], atol=1e-8)


def test_a_drawn_token_has_loss_zero_and_stays_in_the_denominator():
    tokens, chosen = big(), objective("clip_cov", fraction=0.05, cov_low=0.5)
    keep = chosen.keep(tokens)
    drawn = ~keep & objective("ppo").keep(tokens)
    assert drawn.sum() == int(0.05 * tokens.keep.sum())
    np.testing.assert_array_equal(chosen.token_loss(tokens, keep)[drawn], 0)
    assert float(chosen.divisor(tokens)) == tokens.keep.sum()


def test_the_same_seed_draws_the_same_tokens_and_another_seed_others():
    tokens = big()
    draws = [
        ~objective("clip_cov", fraction=0.05, cov_low=0.5, seed=s).keep(tokens) for s in (0, 0, 1)
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] & draws[2]).sum() < 0.7 * draws[0].sum()


def test_where_there_are_too_few_candidates_all_are_drawn():
    tokens = big()
    chosen = objective("clip_cov", fraction=1.0, cov_low=1.0, cov_high=5.0)
    candidates = clip_cov_candidates(Tokens(tokens, gradient=False), chosen.params)
    assert 0 < candidates.sum() < tokens.keep.sum()
    np.testing.assert_array_equal(~chosen.keep(tokens), candidates | ~objective("ppo").keep(tokens))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"seed": 0.5}, "seed=0.5: pass a whole number"),
        ({"cov_low": 6}, "cov_low=6 is above cov_high=5.0; swap them"),
        ({"fraction": 0}, "fraction=0: pass a number above 0"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        objective("clip_cov", **params)


def test_kl_cov_makes_the_tokens_of_largest_covariance_pay_for_leaving():
    tokens, chosen = big(), objective("kl_cov", fraction=0.02, coef=0.3)
    cov = covariance(Tokens(tokens, gradient=False))
    k = int(0.02 * tokens.keep.sum())
    paying = cov >= np.sort(cov, axis=None)[-k]
    extra = chosen.gradient(tokens) - objective("is").gradient(tokens)
    expected = np.where(paying, -0.3 * np.sign(tokens.log_ratio()), 0)
    np.testing.assert_allclose(extra, expected, atol=1e-15)
    assert chosen.keep(tokens).all()
    difference = float(chosen.loss(tokens)[0]) - float(objective("is").loss(tokens)[0])
    assert difference == pytest.approx(0.3 * np.abs(tokens.log_ratio()[paying]).sum() / 1200)


def test_at_least_one_token_pays_however_small_the_fraction():
    tokens = batch(columns())
    extra = objective("kl_cov").gradient(tokens) - objective("is").gradient(tokens)
    assert (np.abs(extra) > 0.5).sum() == 1
