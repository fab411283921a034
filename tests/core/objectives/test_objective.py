"""How objectives are called: names, parameters, aggregations and their messages."""

import math
import pickle

import numpy as np
import pytest

from m2po_lab.core.objectives import AGGREGATIONS, DIAGNOSTICS, OBJECTIVES, Counts, objective
from m2po_lab.core.objectives.base import SCOPES
from tests.core.objectives.conftest import batch, columns


def test_grpo_is_ppo():
    assert objective("grpo").name == "ppo"
    assert objective("grpo", eps_low=0.1) == objective("ppo", eps_low=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: objective("dapoo"), "unknown objective 'dapoo'; did you mean dapo"),
        (lambda: objective("ppo", eps_hgih=0.3), "ppo: unknown parameter 'eps_hgih'.*eps_high"),
        (lambda: objective("is", eps=0.3), r"is: unknown parameter 'eps' \(valid: none\)"),
        (lambda: objective("ppo", "token_meen"), "unknown aggregation 'token_meen'.*token_mean"),
        (lambda: objective("ppo", eps_low=-0.1), "ppo: eps_low=-0.1: .*at least 0 and at most 1"),
        (lambda: objective("ppo", eps_high=math.nan), "ppo: eps_high=nan"),
        (lambda: objective("ppo", eps_high="0.2"), "ppo: eps_high='0.2': pass a number"),
        (lambda: objective("ppo", eps_high=None), "ppo: eps_high=None: pass a number"),
        (lambda: objective("dual_clip", c=0.5), "dual_clip: c=0.5: .*at least 1"),
        (lambda: objective("two_sided", delta=1.1), r"delta=1.1 must be above 1 \+ eps_high = 1.2"),
        (lambda: objective("ppo", "constant"), "aggregation='constant' with max_length=None"),
        (lambda: objective("ppo", max_length=8), "aggregation='token_mean' with max_length=8"),
        (lambda: objective("ppo", "constant", max_length=0), "max_length=0: .*above 0"),
    ],
)
def test_a_wrong_call_is_a_value_error_that_says_what_is_right(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_defaults_pass_their_own_checks_and_every_default_has_a_source(name):
    spec = OBJECTIVES[name]
    assert objective(name).params == spec.defaults
    assert spec.scope in SCOPES
    assert spec.aggregation in AGGREGATIONS
    for key, parameter in spec.parameters.items():
        assert parameter.source, key
        assert parameter.meaning, key
    assert all((spec.summary, spec.formula, spec.paper, spec.denominator))
    assert spec.link.startswith("https://")


def test_an_objective_cannot_be_changed(name):
    chosen = objective(name)
    with pytest.raises(AttributeError):
        chosen.name = "other"
    with pytest.raises(TypeError):
        chosen.params["eps_low"] = 1


def test_an_objective_survives_pickling(name):
    for chosen in (objective(name), objective(name, "constant", max_length=8)):
        assert pickle.loads(pickle.dumps(chosen)) == chosen


def test_every_diagnostic_is_explained(name):
    diagnostics = objective(name).loss(batch(columns()))[1]
    assert set(DIAGNOSTICS) <= set(diagnostics)
    explained = set(DIAGNOSTICS) | set(OBJECTIVES[name].reports)
    assert set(diagnostics) <= explained
    assert all(value.ndim == 0 for value in diagnostics.values())


def test_each_aggregation_divides_as_its_text_says():
    tokens = batch(columns())
    lengths = tokens.keep.sum(axis=1)
    loss = objective("is").token_loss(tokens, tokens.keep)
    rows, total = (lengths > 0).sum(), lengths.sum()
    per_row = loss.sum(axis=1)
    means = per_row[lengths > 0] / lengths[lengths > 0]
    expected = {
        "token_mean": loss.sum() / total,
        "sequence_mean_token_mean": means.sum() / rows,
        "sequence_mean": means.sum() / rows,
        "sequence_sum": per_row.sum() / rows,
        "constant": per_row.sum() / (rows * 16),
    }
    assert set(expected) == set(AGGREGATIONS)
    for aggregation, value in expected.items():
        length = {"max_length": 16} if aggregation == "constant" else {}
        got, _ = objective("is", aggregation, **length).loss(tokens)
        assert float(got) == pytest.approx(float(value), rel=1e-12), aggregation


def test_counts_of_the_host_replace_those_of_the_batch():
    tokens = batch(columns())
    own, _ = objective("ppo").loss(tokens)
    given, _ = objective("ppo").loss(tokens, Counts(tokens=np.int64(270), rows=1))
    assert float(given) == pytest.approx(float(own) * tokens.keep.sum() / 270, rel=1e-12)


def test_a_token_exactly_at_its_bound_keeps_its_gradient():
    d = np.log([[1.2, 0.8]])
    for sign in (1.0, -1.0):
        tokens = batch(
            {
                "current_logp": d,
                "behavior_logp": np.zeros((1, 2)),
                "advantage": np.full((1, 2), sign),
            }
        )
        assert objective("ppo").keep(tokens).all()
        wide = tokens.replace(current_logp=d + np.array([[1e-12, -1e-12]]))
        expected = [[sign < 0, sign > 0]]
        np.testing.assert_array_equal(objective("ppo").keep(wide), expected)


def test_the_binding_fractions_by_sign_add_up():
    _, diagnostics = objective("ppo").loss(batch(columns(spread=0.4)))
    both = diagnostics["binding_fraction_positive"] + diagnostics["binding_fraction_negative"]
    assert 0 < both == pytest.approx(diagnostics["masked_fraction"])
    assert diagnostics["mass_kept"] < 1
    assert diagnostics["m2_after"] < diagnostics["m2_before"]
