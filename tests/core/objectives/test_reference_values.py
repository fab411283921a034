"""Losses and gradients of public implementations, computed by them in float64 on one batch."""

import json

import numpy as np
import pytest

from m2po_lab.core.objectives import OBJECTIVES, objective
from tests.conftest import load, to_numpy
from tests.core.objectives.conftest import DATA, batch

VALUES = json.loads((DATA / "methods_values.json").read_text())
ENTRIES = json.loads((DATA / "objective_map.json").read_text())["entries"]
IMPLEMENTED = {k: e for k, e in ENTRIES.items() if e["objective"] in OBJECTIVES}


def reference_columns():
    given = VALUES["inputs"]
    old, lengths = np.array(given["old_logp"]), np.array(given["lengths"])
    keep = np.arange(old.shape[1])[None] < lengths[:, None]
    return {
        "current_logp": old + np.array(given["log_ratio"]),
        "behavior_logp": old,
        "proximal_logp": np.array(given["prox_logp"]),
        "advantage": np.array(given["A"])[:, None] * keep,
        "keep": keep,
    }


def call(entry):
    return objective(entry["objective"], aggregation=entry["aggregation"], **entry["params"])


def tolerance(key):
    return 1e-6 if key.startswith("areal") else 1e-8


@pytest.mark.parametrize("key", sorted(IMPLEMENTED))
def test_gradient_and_loss_are_those_of_the_public_implementation(key):
    torch, entry, value = load("torch"), IMPLEMENTED[key], VALUES["values"][key]
    tokens = batch(reference_columns(), torch, gradient=True)
    loss, _ = call(entry).loss(tokens)
    loss.backward()
    gradient = to_numpy(tokens.current_logp.grad)
    np.testing.assert_allclose(gradient, value["grad"], rtol=0, atol=tolerance(key))
    if entry["compare_loss"]:
        assert float(loss.detach()) == pytest.approx(value["loss"], abs=tolerance(key))


@pytest.mark.parametrize("key", sorted(IMPLEMENTED))
def test_number_of_tokens_without_gradient_is_that_of_the_public_implementation(key):
    tokens = batch(reference_columns())
    dropped = tokens.keep & (tokens.advantage != 0) & (call(IMPLEMENTED[key]).gradient(tokens) == 0)
    assert dropped.sum() == VALUES["values"][key]["n_zero_grad_among_valid_A_nonzero"]


@pytest.mark.parametrize(
    "key", sorted(k for k in IMPLEMENTED if "w_tokenmean_equiv" in VALUES["values"][k])
)
def test_weight_is_that_of_the_public_implementation(key):
    tokens = batch(reference_columns())
    expected = np.array(VALUES["values"][key]["w_tokenmean_equiv"], dtype=float)
    some = tokens.keep & (tokens.advantage != 0)
    weight = call(IMPLEMENTED[key]).weight(tokens)
    np.testing.assert_allclose(weight[some], expected[some], rtol=0, atol=100 * tolerance(key))


def test_every_entry_of_the_map_names_a_value():
    assert set(ENTRIES) <= set(VALUES["values"])


@pytest.mark.parametrize(
    ("key", "entry", "behavior"),
    [
        (
            "areal_ppo_nondecoupled_cclip3",
            {"objective": "dual_clip", "params": {"c": 3.0}, "aggregation": "token_mean"},
            "behavior_logp",
        ),
        (
            "areal_gspo",
            {
                "objective": "gspo",
                "params": {"eps_low": 0.2, "eps_high": 0.2},
                "aggregation": "token_mean",
            },
            "behavior_logp",
        ),
        (
            # a trap: "decoupled" without rejection sampling is PPO against the proximal policy,
            # with no weight for what the behavior policy did
            "areal_decoupled_ppo_noRS",
            {"objective": "ppo", "params": {}, "aggregation": "token_mean"},
            "proximal_logp",
        ),
    ],
)
def test_entries_beyond_the_map_are_reproduced_too(key, entry, behavior):
    torch, value, columns = load("torch"), VALUES["values"][key], reference_columns()
    tokens = batch({**columns, "behavior_logp": columns[behavior]}, torch, gradient=True)
    loss, _ = call(entry).loss(tokens)
    loss.backward()
    gradient = to_numpy(tokens.current_logp.grad)
    np.testing.assert_allclose(gradient, value["grad"], rtol=0, atol=1e-6)
    assert float(loss.detach()) == pytest.approx(value["loss"], abs=1e-6)
