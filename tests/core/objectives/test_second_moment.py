"""M2PO and its variants on the reference cases, and what sets them apart."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import objective
from m2po_lab.core.selection import eligible
from tests.conftest import load, to_numpy
from tests.core.objectives.conftest import DATA, batch, columns
from tests.core.objectives.test_reference_values import VALUES, reference_columns

CASES = {c["name"]: c for c in json.loads((DATA / "m2po_cases.json").read_text())["cases"]}
REFERENCE = {
    "m2po": "trinity_pr616",
    "m2po_released": "official_af54a3e_miniclip_None",
    "m2po_areal": "areal_main_4aef98d",
    "m2po_all_tokens": "skyrl_fork_all_token_N_strict",
}

RELEASED_WORKS = sorted(
    name
    for name, case in CASES.items()
    if "error" not in case["expected"]["official_af54a3e_miniclip_None"]
    and np.isfinite(np.array(case["log_ratio"], dtype=float)).all()
)
"""Where the authors' code neither fails nor gives NaN."""


def case_batch(case, xp=None):
    d = np.array(case["log_ratio"], dtype=np.float32)
    return batch(
        {
            "current_logp": d,
            "behavior_logp": np.zeros_like(d),
            "advantage": np.array(case["advantages"], dtype=np.float32),
            "keep": np.array(case["mask"], dtype=bool),
        },
        xp,
    )


def expected_mask(name, case):
    value = case["expected"][REFERENCE[name]]
    return value.get("grad_nonzero") if isinstance(value, dict) else value


@pytest.mark.parametrize("variant", REFERENCE)
@pytest.mark.parametrize("key", CASES)
def test_the_mask_is_that_of_the_public_implementation(variant, key, xp):
    case = CASES[key]
    chosen, tokens = objective(variant, budget=case["tau"]), case_batch(case, xp)
    expected = expected_mask(variant, case)
    if expected is None:
        with pytest.raises(ValueError, match=r"non-finite|not finite|crashes"):
            chosen.keep(tokens)
        return
    np.testing.assert_array_equal(to_numpy(chosen.keep(tokens)), np.array(expected, dtype=bool))


@pytest.mark.parametrize("key", RELEASED_WORKS)
def test_the_released_clip_range_loss_and_gradient_are_those_of_the_authors_code(key):
    case, torch = CASES[key], load("torch")
    expected = case["expected"]["official_af54a3e_miniclip_None"]
    tokens = case_batch(case, torch)
    tokens.current_logp.requires_grad_(True)
    loss, diagnostics = objective("m2po_released", budget=case["tau"]).loss(tokens)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(expected["loss"], abs=1e-6)
    np.testing.assert_allclose(to_numpy(tokens.current_logp.grad), expected["grad"], atol=1e-6)
    assert float(diagnostics["clip_low"]) == pytest.approx(expected["clip_low_eps"], abs=1e-6)
    assert float(diagnostics["clip_high"]) == pytest.approx(expected["clip_high_eps"], rel=1e-6)
    assert float(diagnostics["released_m2_after"]) == pytest.approx(expected["M2_after"])


def test_areal_with_its_clip_and_cap_is_its_whole_loss():
    torch, value = load("torch"), VALUES["values"]["areal_m2po_thr0.04"]
    chosen = objective("m2po_areal", budget=0.04, eps_low=0.2, eps_high=0.2, cap=5.0)
    tokens = batch(reference_columns(), torch, gradient=True)
    loss, _ = chosen.loss(tokens)
    loss.backward()
    np.testing.assert_allclose(to_numpy(tokens.current_logp.grad), value["grad"], atol=1e-6)
    assert float(loss.detach()) == pytest.approx(value["loss"], abs=1e-6)
    selected = objective("m2po_areal", budget=0.04).keep(batch(reference_columns()))
    np.testing.assert_array_equal(selected, np.array(value["m2_keep_mask"], dtype=bool))


def test_areal_takes_the_current_policy_where_there_is_no_proximal_one():
    values = columns()
    without = {k: v for k, v in values.items() if k != "proximal_logp"}
    same = {**values, "proximal_logp": values["current_logp"]}
    chosen = objective("m2po_areal")
    assert "proximal_logp" not in chosen.needs
    np.testing.assert_array_equal(chosen.keep(batch(without)), chosen.keep(batch(same)))


def test_areal_ignores_advantages_and_divides_by_what_it_keeps():
    values = columns()
    flipped = batch({**values, "advantage": -values["advantage"]})
    chosen = objective("m2po_areal")
    np.testing.assert_array_equal(chosen.keep(flipped), chosen.keep(batch(values)))
    kept = chosen.keep(batch(values)).sum()
    assert 0 < kept < values["keep"].sum()
    assert float(chosen.divisor(batch(values))) == kept


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"eps_low": 0.2}, "eps_low and eps_high together"),
        ({"cap": 5.0}, "eps_low and eps_high together"),
        ({"budget": -1}, "budget=-1: pass a number at least 0"),
        ({"budget": float("nan")}, "budget=nan"),
    ],
)
def test_areal_rejects_parameters_that_do_not_go_together(params, message):
    with pytest.raises(ValueError, match=message):
        objective("m2po_areal", **params)


def test_at_an_unlimited_budget_m2po_is_importance_sampling():
    tokens = batch(columns(spread=2.0))
    free, plain = objective("m2po", budget=1e9), objective("is")
    np.testing.assert_array_equal(free.keep(tokens), plain.keep(tokens))
    assert float(free.loss(tokens)[0]) == float(plain.loss(tokens)[0])


def test_at_budget_zero_m2po_keeps_no_active_token_and_all_others():
    tokens = batch(columns())
    keep = objective("m2po", budget=0).keep(tokens)
    np.testing.assert_array_equal(keep, tokens.keep & ~eligible(tokens))


@settings(max_examples=60, deadline=None)
@given(
    d=st.lists(st.floats(-3, 3), min_size=1, max_size=30),
    budget=st.floats(0, 2),
    sign=st.sampled_from([-1.0, 1.0]),
)
def test_m2po_keeps_the_budget_and_no_larger_mask_does(d, budget, sign):
    tokens = TokenBatch(
        current_logp=np.array([d]), behavior_logp=np.zeros((1, len(d))), advantage=np.array([sign])
    )
    active = eligible(tokens)
    keep = objective("m2po", budget=budget).keep(tokens)
    kept = np.sort((tokens.log_ratio() ** 2)[active & keep])
    gone = np.sort((tokens.log_ratio() ** 2)[active & ~keep])
    assert keep[~active].all()
    assert len(kept) == 0 or kept.mean() <= budget + 1e-12
    if len(gone):
        assert (kept.sum() + gone[0]) / (len(kept) + 1) > budget - 1e-12


def test_the_mask_of_a_whole_mini_batch_can_be_applied_to_its_micro_batches():
    values, chosen = columns(spread=1.0), objective("m2po")
    whole = batch(values)
    keep = chosen.keep(whole)
    parts = [batch({k: v[i : i + 2] for k, v in values.items()}) for i in (0, 2, 4)]
    total = sum(chosen.token_loss(p, keep[2 * i : 2 * i + 2]).sum() for i, p in enumerate(parts))
    assert total / whole.keep.sum() == pytest.approx(float(chosen.loss(whole)[0]), rel=1e-12)


def test_diagnostics_say_how_far_the_budget_was_exceeded():
    diagnostics = objective("m2po").loss(batch(columns()))[1]
    assert diagnostics["m2_before"] > 0.04 >= diagnostics["m2_after"]
    assert 0 < diagnostics["masked"] < diagnostics["active"]


@pytest.mark.parametrize("budget", [0.0, 0.04, 100.0])
def test_the_reported_threshold_divides_the_active_tokens_like_the_mask(budget):
    tokens, chosen = batch(columns(spread=1.0)), objective("m2po", budget=budget)
    threshold = chosen.loss(tokens)[1]["threshold"]
    beyond = eligible(tokens) & (tokens.log_ratio() ** 2 > threshold)
    np.testing.assert_array_equal(chosen.keep(tokens), tokens.keep & ~beyond)
