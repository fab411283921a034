"""What holds for every objective, whatever its formula; a new table entry is covered by itself."""

import numpy as np
import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import AGGREGATIONS, OBJECTIVES, Counts, objective
from tests.conftest import load, to_numpy
from tests.core.objectives.conftest import batch, columns, ragged

DROPS_ON_POLICY = {"clip_cov", "stapo"}
"""These choose tokens by covariance or entropy, not by the ratio."""
IGNORES_ADVANTAGE = {"m2po_areal"}
"""These drop tokens by their ratio whatever the advantage, also where it is 0."""
ZERO_ADVANTAGE_HAS_NO_GRADIENT = {"m2po_released"}
"""The released rule is read as its reference masks are: a token with A = 0 is not kept."""

SEPARABLE = sorted(n for n, spec in OBJECTIVES.items() if spec.scope in ("token", "sequence"))
"""The fate of their tokens does not depend on other rows."""


def make(name, aggregation="token_mean", **params):
    length = {"max_length": 8} if aggregation == "constant" else {}
    return objective(name, aggregation=aggregation, **params, **length)


def autograd(chosen, values):
    torch = load("torch")
    tokens = batch(values, torch, gradient=True)
    loss, _ = chosen.loss(tokens)
    loss.backward()
    return float(loss.detach()), to_numpy(tokens.current_logp.grad)


def change(values, **new):
    return {**values, **new}


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_the_gradient_of_the_loss_is_minus_weight_times_advantage_over_the_divisor(
    name, aggregation
):
    values, chosen = columns(), make(name, aggregation)
    tokens = batch(values)
    _, gradient = autograd(chosen, values)
    expected = -chosen.gradient(tokens) / chosen.divisor(tokens)
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-13)
    some = tokens.advantage != 0
    product = (chosen.weight(tokens) * tokens.advantage)[some]
    np.testing.assert_allclose(product, chosen.gradient(tokens)[some], rtol=1e-12, atol=1e-14)


def test_a_token_that_is_not_kept_has_no_weight_and_no_gradient(name):
    values, chosen = columns(spread=2.0), make(name)
    dropped = ~chosen.keep(batch(values))
    _, gradient = autograd(chosen, values)
    assert not chosen.weight(batch(values))[dropped].any()
    if OBJECTIVES[name].penalty is None:
        assert not gradient[dropped].any()


def test_every_library_gives_the_same_mask_weight_and_loss(name, xp):
    values, chosen = columns(), make(name)
    ours, theirs = batch(values), batch(values, xp)
    keep = chosen.keep(theirs)
    np.testing.assert_array_equal(to_numpy(keep), chosen.keep(ours))
    np.testing.assert_allclose(to_numpy(chosen.weight(theirs)), chosen.weight(ours), rtol=1e-12)
    np.testing.assert_allclose(
        to_numpy(chosen.token_loss(theirs, keep)),
        chosen.token_loss(ours, chosen.keep(ours)),
        rtol=1e-12,
    )
    loss, diagnostics = chosen.loss(theirs)
    expected, expected_diagnostics = chosen.loss(ours)
    assert float(loss) == pytest.approx(float(expected), rel=1e-12)
    assert {k: float(v) for k, v in diagnostics.items()} == pytest.approx(
        {k: float(v) for k, v in expected_diagnostics.items()}, rel=1e-9, nan_ok=True
    )


def test_what_lies_in_the_padding_is_never_read(name):
    values, chosen = columns(), make(name)
    filled = {
        k: v if k == "keep" else np.where(values["keep"], v, np.nan) for k, v in values.items()
    }
    loss, gradient = autograd(chosen, values)
    filled_loss, filled_gradient = autograd(chosen, filled)
    assert filled_loss == loss
    np.testing.assert_array_equal(filled_gradient, gradient)


def test_a_ragged_batch_gives_what_the_padded_one_gives(name):
    values, chosen = columns(), make(name, OBJECTIVES[name].aggregation)
    flat, padded = ragged(values), batch(values)
    np.testing.assert_array_equal(chosen.keep(flat), chosen.keep(padded)[padded.keep])
    np.testing.assert_allclose(
        chosen.weight(flat), chosen.weight(padded)[padded.keep], rtol=1e-12, atol=1e-15
    )
    assert float(chosen.loss(flat)[0]) == pytest.approx(float(chosen.loss(padded)[0]), rel=1e-12)


def test_the_order_of_rows_does_not_matter(name):
    values, chosen = columns(), make(name)
    order = np.random.default_rng(1).permutation(len(values["keep"]))
    shuffled = batch({k: v[order] for k, v in values.items()})
    np.testing.assert_array_equal(chosen.keep(shuffled), chosen.keep(batch(values))[order])
    np.testing.assert_allclose(
        chosen.weight(shuffled), chosen.weight(batch(values))[order], rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("name", SEPARABLE)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_micro_batches_with_the_counts_of_the_host_add_up_to_the_whole(name, aggregation):
    chosen = make(name, aggregation)
    values = columns()
    whole, keep = batch(values), values["keep"]
    counts = Counts(tokens=int(keep.sum()), rows=int(keep.any(axis=1).sum()))
    parts = [batch({k: v[i : i + 2] for k, v in values.items()}) for i in range(0, 6, 2)]
    total = sum(float(chosen.loss(part, counts)[0]) for part in parts)
    assert total == pytest.approx(float(chosen.loss(whole)[0]), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("size", [1e4, 1e150, 1e300])
def test_extreme_log_ratios_leave_weight_and_gradient_finite_and_dropped_tokens_without(name, size):
    values = columns()
    shift = np.zeros(values["keep"].shape)
    shift[:, 0], shift[:, 1] = size, -size
    behavior = values["behavior_logp"]
    for proximal in (values["proximal_logp"], behavior + shift / 2, behavior - shift):
        new = change(values, current_logp=behavior + shift, proximal_logp=proximal)
        chosen = make(name)
        loss, gradient = autograd(chosen, new)
        assert np.isfinite(loss) or size == 1e300
        assert np.isfinite(gradient).all()
        assert np.isfinite(chosen.weight(batch(new))).all()
        if OBJECTIVES[name].penalty is None:
            assert not gradient[~chosen.keep(batch(new))].any()


def test_without_any_advantage_only_a_penalty_has_a_gradient(name):
    values = columns()
    values = change(values, advantage=np.zeros_like(values["advantage"]))
    loss, gradient = autograd(make(name), values)
    assert np.isfinite(loss)
    assert np.isfinite(gradient).all()
    if OBJECTIVES[name].penalty is None:
        assert not gradient.any()
    if name not in IGNORES_ADVANTAGE:
        kept = make(name).keep(batch(values))
        expected = values["keep"] & (name not in ZERO_ADVANTAGE_HAS_NO_GRADIENT)
        np.testing.assert_array_equal(kept, expected)
    assert make(name).loss(batch(values))[1]["masked"] == 0


def test_on_policy_every_kept_token_has_weight_one(name):
    values = columns()
    old = values["behavior_logp"]
    tokens = batch(change(values, current_logp=old, proximal_logp=old))
    chosen = make(name)
    keep = chosen.keep(tokens)
    pushed = keep & (tokens.advantage != 0)
    np.testing.assert_allclose(chosen.weight(tokens)[pushed], 1.0, rtol=1e-12)
    if name not in DROPS_ON_POLICY:
        expected = tokens.keep
        if name in ZERO_ADVANTAGE_HAS_NO_GRADIENT:
            expected = expected & (tokens.advantage != 0)
        np.testing.assert_array_equal(keep, expected)


def test_a_batch_without_a_valid_token_has_loss_zero_and_gradient_zero(name):
    values = columns()
    values = change(values, keep=np.zeros_like(values["keep"]))
    loss, gradient = autograd(make(name), values)
    assert loss == 0
    assert not gradient.any()
    diagnostics = make(name).loss(batch(values))[1]
    assert diagnostics["tokens"] == 0
    assert np.isnan(diagnostics["masked_fraction"])


def test_a_batch_of_no_rows_has_loss_zero(name):
    empty = {k: v[:0] for k, v in columns().items()}
    assert float(make(name).loss(batch(empty))[0]) == 0


def test_empty_rows_change_nothing(name):
    values = columns()
    some = values["keep"].any(axis=1)
    without = batch({k: v[some] for k, v in values.items()})
    chosen = make(name, OBJECTIVES[name].aggregation)
    assert float(chosen.loss(without)[0]) == pytest.approx(float(chosen.loss(batch(values))[0]))


def test_a_single_token_works(name):
    values = {k: v[:1, :1] for k, v in columns().items()}
    loss, gradient = autograd(make(name), values)
    assert np.isfinite(loss)
    expected = -make(name).gradient(batch(values)) / make(name).divisor(batch(values))
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_on_a_valid_token_is_an_error_that_names_rows(name, bad):
    for column in make(name).needs:
        if column not in columns():
            continue
        values = columns()
        spoiled = values[column].copy()
        spoiled[3, 1] = bad
        tokens = batch(change(values, **{column: spoiled}))
        calls = [make(name).weight, make(name).loss]
        calls += [make(name).keep] if OBJECTIVES[name].keep_checks_finite else []
        for call in calls:
            with pytest.raises(ValueError, match=rf"{column} is not finite .* row 3 "):
                call(tokens)


def test_a_missing_column_is_an_error_that_names_it(name):
    for column in make(name).needs:
        if column == "probabilities":
            continue
        values = {k: v for k, v in columns().items() if k != column}
        with pytest.raises(ValueError, match=f"{name} needs {column}"):
            make(name).loss(batch(values))


def test_the_loss_is_the_sum_of_token_losses_over_the_divisor(name):
    tokens, chosen = batch(columns()), make(name, OBJECTIVES[name].aggregation)
    token_loss = chosen.token_loss(tokens, chosen.keep(tokens))
    assert not token_loss[~tokens.keep].any()
    total = (token_loss / chosen.divisor(tokens)).sum()
    assert float(chosen.loss(tokens)[0]) == pytest.approx(float(total), rel=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_gradient_of_low_precision_log_probs_is_finite_however_far_the_policies_are(
    name, dtype
):
    torch, values = load("torch"), columns()
    shift = np.zeros(values["keep"].shape)
    shift[:, 0], shift[:, 1] = 1e4, -1e4
    for current, proximal in ((shift, shift / 2), (shift, -shift), (0 * shift, shift)):
        new = change(values, current_logp=current, behavior_logp=0 * shift, proximal_logp=proximal)
        new = {
            k: torch.asarray(v) if k == "keep" else torch.asarray(v).to(getattr(torch, dtype))
            for k, v in new.items()
        }
        new["current_logp"].requires_grad_(True)
        make(name).loss(TokenBatch(**new))[0].backward()
        assert torch.isfinite(new["current_logp"].grad).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_low_precision_log_probs_keep_their_gradient_and_give_a_float64_loss(name, dtype):
    torch = load("torch")
    values = {
        k: torch.asarray(v) if k == "keep" else torch.asarray(v).to(getattr(torch, dtype))
        for k, v in columns().items()
    }
    values["current_logp"].requires_grad_(True)
    loss, _ = make(name).loss(TokenBatch(**values))
    loss.backward()
    assert loss.dtype == torch.float64
    assert values["current_logp"].grad.dtype == getattr(torch, dtype)


def test_mask_weight_and_diagnostics_carry_no_gradient(name):
    tokens = batch(columns(), load("torch"), gradient=True)
    chosen = make(name)
    assert not chosen.keep(tokens).requires_grad
    assert not chosen.weight(tokens).requires_grad
    assert not any(value.requires_grad for value in chosen.loss(tokens)[1].values())
