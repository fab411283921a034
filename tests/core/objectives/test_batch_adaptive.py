"""BAPO, STAPO, VCPO and ASPO by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import objective
from m2po_lab.core.objectives.batch_adaptive import bapo_bounds, bapo_highs
from m2po_lab.core.objectives.tokens import Tokens
from tests.core.objectives.conftest import batch, columns
from tests.core.objectives.test_reference_values import VALUES, reference_columns


def ratios(values, advantage, **more):
    d = np.log(np.asarray(values, dtype=float))
    old = np.full_like(d, -9.0)
    return TokenBatch(
        current_logp=old + d,
        behavior_logp=old,
        advantage=np.asarray(advantage, dtype=float),
        **{k: np.asarray(v, dtype=float) for k, v in more.items()},
    )


def bounds(tokens, **params):
    chosen = objective("bapo", **params)
    found = bapo_bounds(Tokens(tokens, gradient=False), chosen.params)
    return tuple(float(bound) for bound in found)


def loop(tokens, params):
    """The search as a loop over the pair of bounds."""
    r, adv = np.exp(tokens.log_ratio())[tokens.keep], tokens.advantage[tokens.keep]

    def enough(low, high):
        used = np.where(adv >= 0, np.minimum(r, high), np.maximum(r, low)) * adv
        return used[used > 0].sum() >= params["target_ratio"] * -used[used < 0].sum()

    low, high = params["low_start"], params["high_start"]
    while not enough(low, high) and low < params["low_max"] and params["low_step"]:
        low = min(low + params["low_step"], params["low_max"])
    while not enough(low, high) and high < params["high_max"] and params["high_step"]:
        high = min(high + params["high_step"], params["high_max"])
    return low, high


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    target=st.floats(0.1, 10),
    low_step=st.sampled_from([0.0, 0.02, 0.15, 9.0]),
    high_step=st.sampled_from([0.0, 0.05, 0.9, 9.0]),
)
def test_the_bapo_bounds_are_those_of_a_loop(seed, target, low_step, high_step):
    tokens = batch(columns(seed, spread=1.0))
    given = {"target_ratio": target, "low_step": low_step, "high_step": high_step}
    assert bounds(tokens, **given) == loop(tokens, objective("bapo", **given).params)


def test_bapo_ends_at_the_bounds_of_the_public_implementation():
    final = VALUES["values"]["bapo_repo"]["final_bounds"][0]
    expected = (final["clip_low"], final["clip_high"])
    assert bounds(batch(reference_columns())) == expected


def test_bapo_starts_at_its_first_bounds_where_good_tokens_already_balance_bad_ones():
    tokens = ratios([[1.0], [1.0]], [1.0, -0.5])
    assert bounds(tokens) == (0.6, 1.2)
    keep = objective("bapo").keep(ratios([[1.3, 1.1], [0.5, 0.7]], [1.0, -0.1]))
    np.testing.assert_array_equal(keep, [[False, True], [False, True]])


def test_bapo_raises_the_lower_bound_first_and_then_the_upper_to_their_maxima():
    hopeless = ratios([[2.0], [0.5]], [0.01, -1.0])
    assert bounds(hopeless) == (0.9, 3.0)
    assert bounds(ratios([[2.0], [0.5]], [1.0, -2.05])) == (0.9, pytest.approx(1.85))
    params = objective("bapo", high_step=0.7).params
    np.testing.assert_allclose(bapo_highs(params), [1.2, 1.9, 2.6, 3.0])


def test_bapo_caps_negative_tokens_at_c_and_reports_its_bounds():
    tokens = ratios([[9.0, 1.0], [1.0, 1.0]], [-1.0, 20.0])
    loss, diagnostics = objective("bapo", c=3.0).loss(tokens)
    np.testing.assert_array_equal(objective("bapo").keep(tokens), [[False, True], [True, True]])
    assert float(loss) == pytest.approx((3.0 + 1.0 - 40.0) / 4)
    assert float(diagnostics["low_bound"]) == 0.6
    assert float(diagnostics["high_bound"]) == 1.2


def test_bapo_refuses_bounds_that_start_above_their_maximum():
    with pytest.raises(ValueError, match=r"bapo: low_start=0.95 is above low_max=0.9; swap them"):
        objective("bapo", low_start=0.95)


def stapo_batch(probability, entropy, advantage, ratio=1.0):
    current = np.log(np.asarray(probability, dtype=float))[None]
    return TokenBatch(
        current_logp=current,
        behavior_logp=current - np.log(ratio),
        advantage=np.asarray([advantage], dtype=float),
        entropy=np.asarray([entropy], dtype=float),
    )


def test_stapo_silences_improbable_tokens_of_certain_positions_in_good_responses():
    probability, entropy = [1e-3, 1e-3, 1e-3, 0.5], [0.1, 0.5, 2.0, 0.1]
    good = stapo_batch(probability, entropy, 1.0)
    chosen = objective("stapo", entropy_quantile=0.5)
    np.testing.assert_array_equal(chosen.keep(good), [[False, True, True, True]])
    assert chosen.keep(stapo_batch(probability, entropy, -1.0)).all()


def test_the_stapo_quantile_is_of_the_improbable_tokens_of_good_responses_or_of_all():
    # of the improbable ones the two more certain are below the median; of all ten none is
    probability, entropy = [1e-3] * 4 + [0.5] * 6, [0.5, 0.6, 0.7, 0.8] + [0.1] * 6
    tokens = stapo_batch(probability, entropy, 1.0)
    paper = objective("stapo", entropy_quantile=0.5)
    np.testing.assert_array_equal(np.flatnonzero(~paper.keep(tokens)[0]), [0, 1])
    first_version = objective("stapo", entropy_quantile=0.5, quantile_of="all")
    assert first_version.keep(tokens).all()
    higher = objective("stapo", entropy_quantile=0.8, quantile_of="all")
    np.testing.assert_array_equal(np.flatnonzero(~higher.keep(tokens)[0]), [0, 1])


def test_a_silenced_token_leaves_the_loss_and_the_denominator_but_a_clipped_one_does_not():
    tokens = stapo_batch(
        [1e-3, 1e-3, 0.5, 0.5, 1e-3],
        [0.1, 0.1, 2.0, 2.0, 2.0],
        1.0,
        ratio=[1.0, 2.0, 1.0, 2.0, 1.0],
    )
    chosen = objective("stapo", entropy_quantile=0.75)
    keep = chosen.keep(tokens)
    np.testing.assert_array_equal(keep, [[False, False, True, False, True]])
    # the second is silenced and beyond the clip: it pays nothing, the fourth pays its bound
    np.testing.assert_allclose(chosen.token_loss(tokens, keep), [[0, 0, -1, -1.28, -1]])
    assert float(chosen.divisor(tokens)) == 3
    assert float(chosen.loss(tokens)[0]) == pytest.approx(-3.28 / 3)


@pytest.mark.parametrize("quantile_of", ["rare", "all"])
def test_the_stapo_threshold_is_a_quantile_of_the_whole_mini_batch(quantile_of):
    values = columns()
    whole = batch(values)
    first = batch({k: v[:1] for k, v in values.items()})
    bounds = {"eps_low": 1.0, "eps_high": 1e9}
    chosen = objective("stapo", tau_p=0.9, entropy_quantile=0.3, quantile_of=quantile_of, **bounds)
    assert not np.array_equal(chosen.keep(whole)[:1], chosen.keep(first))
    assert chosen.scope == "mini-batch"


def test_vcpo_truncates_products_and_scales_the_step_by_the_effective_sample_size():
    tokens = ratios([[2.0, 8.0], [0.5, 1.0], [1.0, 1.0]], [1.0, 1.0, -1.0])
    chosen = objective("vcpo", cap=8.0)
    np.testing.assert_allclose(chosen.weight(tokens), [[8, 8], [0.5, 0.5], [1, 1]])
    diagnostics = chosen.loss(tokens)[1]
    ess = (16 + 0.5 + 1) ** 2 / (3 * (256 + 0.25 + 1))
    assert float(diagnostics["sequence_ess_fraction"]) == pytest.approx(ess)
    assert float(diagnostics["learning_rate_scale"]) == pytest.approx(ess**0.5)
    easy = objective("vcpo", base_ess=0.1).loss(tokens)[1]
    assert float(easy["learning_rate_scale"]) == 1


def test_vcpo_has_the_gradient_of_sequence_tis_without_a_proximal_policy():
    tokens = batch(columns(spread=1.0))
    vcpo, tis = objective("vcpo"), objective("tis_sequence", cap=8.0, proximal=False)
    np.testing.assert_array_equal(vcpo.gradient(tokens), tis.gradient(tokens))


def test_aspo_turns_the_ratio_over_for_good_tokens_and_truncates_both_sides():
    tokens = ratios([[0.2, 0.5, 1.1, 1.3], [0.7, 0.9, 2.0, 4.0]], [1.0, -1.0])
    chosen = objective("aspo", eps_low=0.2, eps_high=0.2)
    np.testing.assert_allclose(chosen.weight(tokens), [[3, 2, 1 / 1.1, 0], [0, 0.9, 2, 3]])
    np.testing.assert_array_equal(chosen.keep(tokens), chosen.weight(tokens) > 0)


def test_aspo_clips_uncertain_tokens_of_a_row_more_widely_unless_told_one_number():
    tokens = ratios([[1.3, 1.3, 1.3]], [1.0], entropy=[[0.1, 0.2, 3.0]])
    by_entropy = objective("aspo", entropy_quantile=0.8)
    np.testing.assert_array_equal(by_entropy.keep(tokens), [[False, False, True]])
    one = objective("aspo", eps_low=0.2, eps_high=0.4)
    assert one.keep(tokens).all()
    assert "entropy" in by_entropy.needs
    assert "entropy" not in one.needs


def test_an_aspo_lower_bound_of_zero_drops_no_bad_token():
    tokens = ratios([[1e-9, 0.5, 2.0]], [-1.0])
    assert objective("aspo", eps_low=1.0, eps_high=0.2).keep(tokens).all()
