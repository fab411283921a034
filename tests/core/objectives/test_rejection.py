"""Masked importance sampling: verl's and AReaL's modes against their own values, and the traps."""

import numpy as np
import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import objective
from tests.conftest import load, to_numpy
from tests.core.objectives.conftest import batch
from tests.core.objectives.test_reference_values import VALUES, reference_columns, tolerance

VERL = {"cap": 2.0, "denominator": "kept", "proximal": False}
MODES = {
    "rs_token_k1": {"level": "token", "metric": "k1", "low": 0.5, "high": 2.0, **VERL},
    "rs_token_k2": {"level": "token", "metric": "k2", "high": 0.5, **VERL},
    "rs_token_k3": {"level": "token", "metric": "k3", "high": 0.5, **VERL},
    "rs_seq_sum_k1": {
        "level": "sequence_product", "metric": "k1", "low": 0.25, "high": 4.0, **VERL
    },
    "rs_seq_mean_k1": {
        "level": "sequence_geometric", "metric": "k1", "low": 0.8, "high": 1.25, **VERL
    },
    "rs_seq_max_k2": {"level": "sequence_max", "metric": "k2", "high": 2.0, **VERL},
    "rs_seq_mean_k3": {"level": "sequence_geometric", "metric": "k3", "high": 0.3, **VERL},
    "areal_decoupled_seqmask": {"level": "sequence_geometric", "low": 0.8, "high": 1.2},
}  # fmt: skip
"""Entry of methods_values.json -> parameters of `mis`."""


@pytest.mark.parametrize("key", MODES)
def test_each_mode_has_the_loss_and_gradient_of_the_public_implementation(key):
    value, torch = VALUES["values"][key], load("torch")
    tokens = batch(reference_columns(), torch, gradient=True)
    loss, _ = objective("mis", **MODES[key]).loss(tokens)
    loss.backward()
    np.testing.assert_allclose(
        to_numpy(tokens.current_logp.grad), value["grad"], rtol=0, atol=tolerance(key)
    )
    assert float(loss.detach()) == pytest.approx(value["loss"], abs=tolerance(key))


@pytest.mark.parametrize("key", [k for k in MODES if "kept_mask" in VALUES["values"][k]])
def test_each_mode_keeps_the_tokens_that_the_public_implementation_keeps(key):
    expected = np.array(VALUES["values"][key]["kept_mask"], dtype=bool)
    kept = objective("mis", **MODES[key]).keep(batch(reference_columns()))
    np.testing.assert_array_equal(kept, expected)


def ratios(values, advantage=1.0):
    d = np.log(np.asarray(values, dtype=float))
    return TokenBatch(
        current_logp=d - 3,
        behavior_logp=np.full_like(d, -3.0),
        advantage=np.full(len(d), advantage),
    )


def test_k1_inverts_asymmetric_bounds_and_the_ratio_does_not():
    tokens = ratios([[0.15, 0.25, 0.6, 1.9, 2.1, 4.0]])
    gate = {"level": "token", "low": 0.5, "high": 5.0, "proximal": False}
    straight = objective("mis", metric="ratio", **gate).keep(tokens)
    np.testing.assert_array_equal(straight, [[False, False, True, True, True, True]])
    inverted = objective("mis", metric="k1", **gate).keep(tokens)
    np.testing.assert_array_equal(inverted, [[False, True, True, True, False, False]])


def test_a_rejected_token_shrinks_the_denominator_only_where_asked():
    tokens = ratios([[0.1, 1.0, 1.2, 1.0]])
    gate = {"level": "token", "proximal": False}
    valid, kept = (objective("mis", denominator=d, **gate) for d in ("valid", "kept"))
    np.testing.assert_array_equal(valid.weight(tokens), kept.weight(tokens))
    assert (float(valid.divisor(tokens)), float(kept.divisor(tokens))) == (4, 3)


def test_the_weight_of_a_kept_row_is_the_ratio_that_was_measured():
    tokens = ratios([[2.0, 2.0], [8.0, 1.0]])
    gate = {"proximal": False}
    product = objective("mis", level="sequence_product", **gate).weight(tokens)
    np.testing.assert_allclose(product, [[4, 4], [0, 0]])
    geometric = objective("mis", level="sequence_geometric", **gate).weight(tokens)
    np.testing.assert_allclose(geometric, [[2, 2], [8**0.5, 8**0.5]])
    maximum = objective("mis", level="sequence_max", **gate).weight(tokens)
    np.testing.assert_allclose(maximum, [[2, 2], [0, 0]])


def test_at_token_level_masked_importance_sampling_is_icepop():
    tokens = batch(reference_columns())
    for proximal in (True, False):
        mis = objective("mis", level="token", proximal=proximal)
        icepop = objective("icepop", proximal=proximal)
        np.testing.assert_array_equal(mis.gradient(tokens), icepop.gradient(tokens))
        assert float(mis.loss(tokens)[0]) == float(icepop.loss(tokens)[0])
