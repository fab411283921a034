import json

import numpy as np
import pytest

from m2po_lab.analysis import Options, sample, scan
from m2po_lab.analysis.worst import excerpt
from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.selection import keep_m2po
from m2po_lab.logs.rows import Rows
from tests.analysis.batches import make_batch
from tests.analysis.compare import rows_of


def test_the_worst_tokens_are_the_largest_in_order():
    batches = [make_batch(seed) for seed in range(3)]
    sizes = np.concatenate([np.abs(b.log_ratio())[b.keep] for b in batches])
    found = scan(batches, Options(worst=15)).to_dict()["worst"]
    expected = np.sort(sizes)[::-1][:15]
    np.testing.assert_allclose([abs(t["log_ratio"]) for t in found], expected, rtol=0)


def test_a_worst_token_says_where_it_is_and_what_both_policies_gave():
    behavior = np.log([0.5, 0.5, 0.25])
    batch = TokenBatch(
        behavior_logp=behavior,
        current_logp=behavior + np.asarray([0.0, -3.0, 0.5]),
        advantage=np.asarray([1.0, -2.0]),
        version=np.asarray([3, 3, 1]),
        lengths=np.asarray([2, 1]),
        rows=Rows(
            row_id=["a", "b"],
            step=np.asarray([7, 8]),
            train_version=np.asarray([4, 4]),
            token_ids=np.asarray([10, 11, 12]),
            response=["one two", None],
        ),
    )
    first, second = scan([batch]).to_dict()["worst"]
    assert (first["row_id"], first["step"], first["lag"], first["position"]) == ("a", 7, 1, 1)
    assert (first["token_id"], first["advantage"], first["log_ratio"]) == (11, 1.0, -3.0)
    assert np.isclose(first["behavior_probability"], 0.5)
    assert np.isclose(first["current_probability"], 0.5 * np.exp(-3))
    assert first["proximal_probability"] is None
    assert (first["response"], second["response"]) == ("one two", None)
    assert [t["token_id"] for t in first["context"]] == [10, 11]
    assert [t["position"] for t in second["context"]] == [0]
    assert (second["row_id"], second["token_id"]) == ("b", 12)


def test_ties_do_not_depend_on_the_order_of_rows():
    batch = make_batch(4, rows=200)
    equal = batch.replace(current_logp=batch.behavior_logp - 0.25, proximal_logp=None)
    backwards = rows_of(equal, list(range(200))[::-1])
    first, second = (scan([b]).to_dict()["worst"] for b in (equal, backwards))
    assert len(first) == 20
    assert json.dumps(first) == json.dumps(second)


def test_equal_policies_have_no_worst_token():
    batch = make_batch(4)
    same = batch.replace(current_logp=batch.behavior_logp, proximal_logp=None)
    assert scan([same]).to_dict()["worst"] == []


def test_no_worst_tokens_can_be_asked_for():
    assert scan([make_batch(4)], Options(worst=0)).to_dict()["worst"] == []


def test_each_token_of_a_context_is_kept_or_masked_by_m2po_in_its_own_scope():
    """Between large ones d = .3 is masked; in another step even .4 is within the budget."""
    d = np.asarray([0.3, 0.3, -0.9, 0.3, *[0.1] * 4, 0.4, *[0.1] * 5, -0.2])
    advantage = np.asarray([1.0] * 14 + [0.0])
    batch = TokenBatch(
        behavior_logp=np.full(15, -3.0),
        current_logp=d - 3.0,
        advantage=advantage,
        lengths=np.asarray([4, 11]),
        rows=Rows(row_id=["a", "b"], step=np.asarray([0, 1])),
    )
    found = scan([batch], Options(budget=0.04)).to_dict()["worst"]
    contexts = {token["row_id"]: token["context"] for token in found}
    assert [c["keep"] for c in contexts["a"]] == [False, False, True, False]
    assert {c["keep"] for c in contexts["b"]} == {True}
    assert [c["advantage"] for c in contexts["b"]][-2:] == [1.0, 0.0]


@pytest.mark.parametrize("columns", [("step",), ("step", "mini_batch"), ()])
def test_marks_are_those_of_the_core_scope_by_scope(columns):
    rows, rng = 60, np.random.default_rng(3)
    batch = make_batch(6, rows=rows)
    scope = {name: rng.integers(0, 3, rows) for name in columns}
    batch = batch.replace(rows=Rows(row_id=batch.rows.row_id, **scope))
    report = scan([batch], Options(budget=0.02)).to_dict()
    kept = {}
    groups = np.unique(np.stack([*scope.values(), np.zeros(rows, int)], axis=1), axis=0)
    for group in groups:
        inside = np.all([scope[n] == v for n, v in zip(columns, group, strict=False)], axis=0)
        chosen = np.flatnonzero(np.broadcast_to(inside, rows)).tolist()
        part = rows_of(batch, chosen)
        row, position = part.row_and_position
        mask = keep_m2po(part, 0.02)
        for r, p, k in zip(row.tolist(), position.tolist(), mask.tolist(), strict=True):
            kept[batch.rows.row_id[chosen[r]], p] = k
    seen = [(t["row_id"], c["position"], c["keep"]) for t in report["worst"] for c in t["context"]]
    assert seen
    assert [k for _, _, k in seen] == [kept[name, position] for name, position, _ in seen]
    assert {True, False} <= {k for _, _, k in seen}


def test_beyond_the_sample_a_mark_is_right_or_unknown(monkeypatch):
    batches = [make_batch(seed, rows=200, longest=30) for seed in range(4)]
    exact = scan(batches).to_dict()["worst"]
    monkeypatch.setattr(sample, "MOST_TOKENS", 4000)
    part = scan(batches).to_dict()["worst"]
    pairs = [
        (one["keep"], other["keep"])
        for a, b in zip(exact, part, strict=True)
        for one, other in zip(a["context"], b["context"], strict=True)
    ]
    known = [(a, b) for a, b in pairs if b is not None]
    assert len(known) > 0.9 * len(pairs)
    assert all(a == b for a, b in known)
    assert (False, False) in known


def test_without_advantages_nobody_knows_what_m2po_keeps():
    found = scan([make_batch(0, advantages=False)]).to_dict()["worst"]
    assert {c["keep"] for t in found for c in t["context"]} == {None}


def test_a_token_shows_its_text_and_the_part_of_the_response_around_it():
    texts = [f"word{i} " for i in range(200)]
    d = np.zeros(200)
    d[120] = 3.0
    batch = TokenBatch(
        behavior_logp=np.full(200, -4.0),
        current_logp=d - 4.0,
        lengths=np.asarray([200]),
        rows=Rows(response=["".join(texts)], token_text=[[*texts]]),
    )
    (token,) = scan([batch]).to_dict()["worst"]
    start, stop = token["response_at"]
    assert token["text"] == "word120 "
    assert token["response"][start:stop] == "word120 "
    assert len(token["response"]) == 400
    whole = "".join(texts)
    assert whole[token["response_start"] :].startswith(token["response"])
    assert token["response_characters"] == len(whole)
    assert token["context"][7]["text"] == "word119 "


@pytest.mark.parametrize("texts", [None, ["Ġon", "Ġe"], ["o", "n"]])
def test_a_response_that_the_tokens_do_not_spell_is_shown_from_its_beginning(texts):
    part = excerpt("one " * 200, texts, 1)
    assert part["response"] == "one " * 100
    assert (part["response_start"], part["response_characters"]) == (0, 800)
    assert part["response_at"] is None


def test_a_token_that_the_text_leaves_out_is_nowhere_in_it():
    assert excerpt("one", ["one", "<EOS>"], 1)["response_at"] is None
    assert excerpt("one", ["one", "<EOS>"], 0)["response_at"] == [0, 3]
    assert set(excerpt(None, ["one"], 0).values()) == {None}
