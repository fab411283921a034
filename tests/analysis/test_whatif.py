"""What-if: the report says what the core's objectives do to the same tokens."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.analysis import Options, active, sample, scan
from m2po_lab.analysis.selection_report import fitting
from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import OBJECTIVES, objective
from m2po_lab.core.selection import solve_threshold
from m2po_lab.logs.rows import Rows
from tests.analysis.batches import make_batch
from tests.analysis.compare import close, rows_of


def one_scope(batch: TokenBatch) -> TokenBatch:
    """The same tokens in a log that names neither steps nor mini-batches."""
    return batch.replace(rows=Rows(row_id=batch.rows.row_id))


@cache
def whole_log() -> tuple[TokenBatch, dict[str, Any]]:
    """A log of one scope and its report, which every objective is looked up in."""
    batch = one_scope(make_batch(5, rows=80))
    return batch, scan([batch]).to_dict()


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_a_whole_log_gets_the_numbers_of_the_loss(name: str):
    batch, report = whole_log()
    found = report["objectives"][name]
    aggregation = OBJECTIVES[name].aggregation
    constant = {"max_length": 64.0} if aggregation == "constant" else {}
    _, expected = objective(name, aggregation, **constant).loss(batch)
    assert found["tokens"] == int(expected["tokens"])
    assert found["exact"] is True
    for key in (
        "zero_gradient_fraction",
        "binding_fraction_positive",
        "binding_fraction_negative",
        "weight_mean",
        "weight_ess_fraction",
        "mass_kept",
    ):
        assert found[key] == pytest.approx(float(expected[key]), rel=1e-9), key


def test_weights_are_averaged_where_there_is_an_advantage_to_weigh():
    report = scan([one_scope(make_batch(6, rows=80))]).to_dict()
    stats = report["ratios"]["current/behavior"]["nonzero_advantage"]
    found = report["objectives"]["is"]
    assert found["weight_mean"] == pytest.approx(stats["ratio_mean"], rel=1e-9)
    assert found["weight_ess_fraction"] == pytest.approx(stats["ess_fraction"], rel=1e-9)


@pytest.mark.parametrize("name", ["ppo", "m2po", "m2po_released", "m2po_all_tokens", "reinforce"])
def test_tokens_that_teach_nothing_do_not_move_the_weights(name: str):
    batch = one_scope(make_batch(7, rows=80, scale=0.05))
    assert (batch.advantage[batch.keep] == 0).sum() > 50
    without = batch.replace(keep=batch.keep & (batch.advantage != 0))
    whole, part = (scan([b]).to_dict()["objectives"][name] for b in (batch, without))
    assert whole["weight_mean"] == pytest.approx(part["weight_mean"], rel=1e-9)
    assert whole["weight_ess_fraction"] == pytest.approx(part["weight_ess_fraction"], rel=1e-9)


def test_without_an_advantage_other_than_0_weights_are_null_and_say_why():
    batch = make_batch(8)
    report = scan([batch.replace(advantage=np.zeros_like(batch.advantage))]).to_dict()
    assert report["objectives"]["is"]["weight_mean"] is None
    needs = {entry["what"]: entry["needs"] for entry in report["not_computable"]}
    assert needs["objectives weights"] == "an advantage other than 0"


def test_every_objective_is_reported_or_says_what_it_needs():
    report = scan([make_batch(0)]).to_dict()
    assert list(report["objectives"]) == list(OBJECTIVES)
    missing = {entry["what"] for entry in report["not_computable"]}
    for name, entry in report["objectives"].items():
        assert (entry is None) == (f"objectives/{name}" in missing), name
    assert sum(entry is not None for entry in report["objectives"].values()) == len(OBJECTIVES)


def test_m2po_is_solved_mini_batch_by_mini_batch():
    batch = make_batch(1, rows=120)
    mini = np.arange(120) % 4
    batch = batch.replace(rows=Rows(step=np.zeros(120, dtype=int), mini_batch=mini))
    found = scan([batch]).to_dict()["objectives"]["m2po"]
    masked = active_tokens = 0
    for number in range(4):
        solved = solve_threshold(rows_of(batch, np.flatnonzero(mini == number).tolist()), 0.04)
        masked += solved.masked
        active_tokens += solved.active
    assert (found["masked"], found["active"]) == (masked, active_tokens)
    assert found["scope"] == "mini-batch"
    assert found["masked_low"] == found["masked_high"] == masked
    assert found["m2_after"] <= 0.04 < found["m2_before"]


@pytest.mark.parametrize(
    ("rows", "scope"),
    [
        (Rows(), "log"),
        (Rows(step=np.arange(40)), "step"),
        (Rows(train_version=np.arange(40)), "step"),
        (Rows(step=np.arange(40), mini_batch=np.arange(40) % 2), "mini-batch"),
    ],
)
def test_the_scope_of_m2po_is_named(rows: Rows, scope: str):
    report = scan([make_batch(0).replace(rows=rows)]).to_dict()
    assert report["objectives"]["m2po"]["scope"] == scope


def test_without_advantages_only_objectives_that_ignore_them_are_judged():
    report = scan([make_batch(0, advantages=False)]).to_dict()
    judged = {name for name, entry in report["objectives"].items() if entry is not None}
    assert {"is", "reinforce", "cispo", "m2po_areal"} <= judged
    assert not judged & {"ppo", "m2po", "gspo", "dapo"}
    assert report["objectives"]["cispo"]["binding_fraction_positive"] is None
    assert report["sweeps"] == {"clip": None, "budget": None}


def test_sweeps_pass_through_the_objectives_at_their_own_settings():
    batch = make_batch(2, rows=100)
    options = Options(eps_grid=(0.2, 0.3), budget_grid=(0.01, 0.04))
    report = scan([batch], options).to_dict()
    clip, budget = report["sweeps"]["clip"], report["sweeps"]["budget"]
    assert clip[0]["fraction"] == report["objectives"]["ppo"]["zero_gradient_fraction"]
    assert clip[1]["fraction"] < clip[0]["fraction"]
    assert budget[1]["masked_fraction"] == report["objectives"]["m2po"]["masked_fraction"]
    assert budget[0]["masked_fraction"] > budget[1]["masked_fraction"]


def test_the_clip_option_is_the_clip_of_ppo():
    report = scan([make_batch(2)], Options(clip_low=0.1, clip_high=0.5)).to_dict()
    assert report["objectives"]["ppo"]["params"] == {"eps_low": 0.1, "eps_high": 0.5}


def test_overlap_is_one_with_itself_and_symmetric():
    overlap = scan([make_batch(2, rows=100)]).to_dict()["overlap"]
    matrix = np.asarray(overlap["jaccard"])
    np.testing.assert_array_equal(np.diag(matrix), 1.0)
    np.testing.assert_array_equal(matrix, matrix.T)
    names = overlap["objectives"]
    clip = names.index("ppo")
    assert matrix[clip, names.index("dapo")] > matrix[clip, names.index("m2po_all_tokens")]


def test_lost_tokens_add_up_over_probability_and_entropy():
    entry = scan([make_batch(2, rows=100)]).to_dict()["objectives"]["ppo"]
    for name in ("lost_by_probability", "lost_by_entropy"):
        lost = sum(b["n"] * b["fraction"] for b in entry[name] if b["n"])
        assert lost / entry["tokens"] == pytest.approx(entry["zero_gradient_fraction"])


squares = st.lists(
    st.one_of(st.just(0.04), st.just(0.0), st.floats(0, 1), st.floats(0, 1e-9)), max_size=40
)


@settings(max_examples=100, deadline=None)
@given(squares, st.sampled_from([0.0, 0.01, 0.04, 0.3]))
def test_the_budget_sweep_decides_as_the_core_does(values: list[float], budget: float):
    d = np.sqrt(np.asarray(values)) + 1e-6
    batch = TokenBatch(
        behavior_logp=np.full(d.shape, -9.0),
        current_logp=-9.0 + d,
        advantage=np.ones(d.shape),
        lengths=np.asarray([d.size]),
    )
    exact = batch.log_ratio()
    kept = fitting(np.sort(exact * exact), budget)
    assert d.size - kept == solve_threshold(batch, budget).masked


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 0.6), st.sampled_from([1e-3, 0.01, 0.04, 0.3]))
def test_histograms_bracket_what_the_core_masks(seed: int, scale: float, budget: float):
    batch = make_batch(seed, rows=60, scale=scale)
    report = scan([batch])
    tables = report.ratios["current/behavior"]
    found = active.masked(tables.scopes, budget)
    for i, (step, _) in enumerate(tables.scopes.keys):
        rows = np.flatnonzero(batch.rows.step == step).tolist()
        masked = solve_threshold(rows_of(batch, rows), budget).masked
        assert found.low[i] <= masked <= found.high[i]
        assert found.low[i] <= found.estimate[i] <= found.high[i]


def test_beyond_the_sample_the_numbers_stay_close(monkeypatch: pytest.MonkeyPatch):
    batches = [make_batch(seed, rows=300, longest=30) for seed in range(8)]
    whole = scan(batches).to_dict()
    monkeypatch.setattr(sample, "MOST_TOKENS", 8000)
    part = scan(batches).to_dict()
    assert part["objectives"]["ppo"]["exact"] is False
    assert part["objectives"]["gspo"]["tokens"] < 8000
    for name in ("ppo", "dapo", "is", "cispo", "sapo"):
        for key in ("zero_gradient_fraction", "weight_mean", "weight_ess_fraction"):
            exact = whole["objectives"][name][key]
            assert part["objectives"][name][key] == pytest.approx(exact, rel=0.02, abs=1e-3)
    for key in ("gspo", "mis", "opsm"):
        exact = whole["objectives"][key]["zero_gradient_fraction"]
        assert part["objectives"][key]["zero_gradient_fraction"] == pytest.approx(exact, abs=0.08)
    m2po, exact = part["objectives"]["m2po"], whole["objectives"]["m2po"]
    assert m2po["masked_low"] <= exact["masked"] <= m2po["masked_high"]
    assert m2po["active"] == exact["active"]
    assert m2po["m2_before"] == pytest.approx(exact["m2_before"])
    assert m2po["m2_after"] == pytest.approx(exact["m2_after"], rel=0.1)
    for one, other in zip(part["sweeps"]["clip"], whole["sweeps"]["clip"], strict=True):
        assert one["fraction"] == pytest.approx(other["fraction"], rel=0.03, abs=5e-4)


def test_which_rows_are_sampled_depends_neither_on_order_nor_on_the_split(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(sample, "MOST_TOKENS", 1000)
    batches = [make_batch(seed) for seed in range(6)]
    whole = scan(batches)
    split = scan(batches[4:]).merge(scan(batches[:2])).merge(scan(batches[3:1:-1]))
    assert whole.sample.level == split.sample.level > 0
    close(whole.to_dict(), split.to_dict())


@pytest.mark.parametrize("absent", ["behavior_logp", "proximal_logp", "current_logp"])
def test_what_an_objective_needs_is_a_column_that_the_log_lacks(absent: str):
    batch = make_batch(3).replace(**{absent: None})
    missing = scan([batch]).to_dict()["not_computable"]
    needs = {entry["what"]: entry["needs"] for entry in missing}
    assert needs["objectives/tis"] == absent
