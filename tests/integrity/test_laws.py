"""What holds for any log, however broken."""

import pickle
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.core.batch import TokenBatch
from m2po_lab.integrity import BatchIntegrity, check, checked
from tests.integrity.logs import any_rows, batch

FEW = settings(max_examples=30, deadline=None)


def same(a: Any, b: Any) -> bool:
    """Equal up to the rounding of sums."""
    if isinstance(a, dict):
        return set(a) == set(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, np.ndarray):
        return bool(np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))
    if hasattr(a, "__dataclass_fields__"):
        return all(same(vars(a)[n], vars(b)[n]) for n in a.__dataclass_fields__)
    return a == b or (a != a and b != b)


def whole(evidence: BatchIntegrity) -> dict[str, Any]:
    """Everything but the bookkeeping of identities and what is local to a batch's end."""
    return {n: v for n, v in vars(evidence).items() if n not in ("keys", "repeats")}


def columns_of(b: TokenBatch) -> list[np.ndarray]:
    return [np.array(c) for c in (b.behavior_logp, b.proximal_logp, b.current_logp)]


@FEW
@given(any_rows())
def test_checking_reduces_keep_and_changes_no_value(rows: list[dict[str, Any]]) -> None:
    before = batch(rows)
    held = columns_of(before)
    clean, _ = check(before)
    assert not (np.asarray(clean.keep) & ~np.asarray(before.keep)).any()
    for mine, theirs in zip(held, columns_of(clean), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@FEW
@given(any_rows())
def test_every_token_is_counted_once(rows: list[dict[str, Any]]) -> None:
    clean, evidence = check(batch(rows))
    t, r = evidence.tokens, evidence.rows
    assert t.kept == int(np.asarray(clean.keep).sum())
    parts = (t.kept, t.masked, t.unaligned, t.non_finite, t.sentinel, t.positive, t.zero_filled)
    assert sum(parts) + t.duplicate == t.logged
    assert r.kept + r.empty + r.emptied + r.duplicate + r.unaligned == r.read == len(rows)


@FEW
@given(any_rows())
def test_what_is_kept_can_be_averaged(rows: list[dict[str, Any]]) -> None:
    clean, _ = check(batch(rows))
    kept = np.asarray(clean.keep)
    for column in columns_of(clean):
        assert (np.isfinite(column[kept]) & (column[kept] <= 0.0625) & (column[kept] > -1000)).all()


@FEW
@given(any_rows())
def test_checking_twice_finds_nothing_more(rows: list[dict[str, Any]]) -> None:
    clean, _ = check(batch([{**row, "id": f"r{i}"} for i, row in enumerate(rows)]))
    again, evidence = check(clean)
    np.testing.assert_array_equal(np.asarray(clean.keep), np.asarray(again.keep))
    assert evidence.faults == {}


@FEW
@given(any_rows(2), st.data())
def test_pieces_add_up_to_the_whole_in_any_order(rows: list[dict[str, Any]], data: Any) -> None:
    rows = [{**row, "id": f"r{i}"} for i, row in enumerate(rows)]
    together = batch(rows)
    pieces = [batch([row]) for row in rows]
    for line, piece in enumerate(pieces, 1):
        piece.rows.line[0] = line
    parts = [check(piece)[1] for piece in pieces]
    parts = [parts[i] for i in data.draw(st.permutations(range(len(parts))))]
    assert same(whole(reduce(add, parts)), whole(check(together)[1]))


@FEW
@given(any_rows(2))
def test_duplicates_are_found_across_batches_as_within_one(rows: list[dict[str, Any]]) -> None:
    rows = [*rows, rows[0]]
    one = check(batch(rows))[1]
    split = reduce(add, (e for _, e in checked([batch([row]) for row in rows])))
    assert split.rows == one.rows
    assert split.tokens == one.tokens
    assert one.rows.duplicate >= 1


@FEW
@given(any_rows(2))
def test_workers_that_do_not_see_each_other_say_what_counts_twice(
    rows: list[dict[str, Any]],
) -> None:
    a, b = (check(batch(rows))[1] for _ in range(2))
    fresh = a.rows.read - a.rows.duplicate
    assert (a + b).keys.repeated == fresh
    assert (a + b).rows.duplicate == 2 * a.rows.duplicate


@FEW
@given(any_rows())
def test_evidence_survives_pickling(rows: list[dict[str, Any]]) -> None:
    _, evidence = check(batch(rows))
    assert same(whole(pickle.loads(pickle.dumps(evidence))), whole(evidence))


def test_the_neutral_element_is_an_empty_log() -> None:
    _, evidence = check(batch([{"behavior": [-1.0], "current": [-1.1], "id": "a"}]))
    assert same(whole(BatchIntegrity() + evidence), whole(evidence))
    assert same(whole(evidence + BatchIntegrity()), whole(evidence))


def test_a_log_of_text_only_is_kept_as_it_is() -> None:
    text = TokenBatch(lengths=np.array([0, 3]))
    clean, evidence = check(text)
    assert evidence.pairs == {}
    assert evidence.tokens.kept == 3
    assert clean.n_rows == 2


def test_padded_and_ragged_layouts_say_the_same() -> None:
    b = np.array([[-1.0, -2.0, -0.5], [-1.0, -9999.0, 1.0]])
    padded = TokenBatch(behavior_logp=b, current_logp=b - 0.1)
    ragged = TokenBatch(
        behavior_logp=b.reshape(-1), current_logp=b.reshape(-1) - 0.1, lengths=np.array([3, 3])
    )
    (clean, one), (flat, two) = check(padded), check(ragged)
    assert same(whole(one), whole(two))
    np.testing.assert_array_equal(np.asarray(clean.keep).reshape(-1), np.asarray(flat.keep))


@pytest.mark.parametrize("order", ["forward", "backward"])
def test_examples_are_the_first_places_whatever_the_order(order: str) -> None:
    rows = [{"behavior": [np.nan], "current": [-1.0], "id": f"r{i}"} for i in range(9)]
    pieces = []
    for line, row in enumerate(rows, 1):
        piece = batch([row])
        piece.rows.line[0] = line
        pieces.append(check(piece)[1])
    total = reduce(add, pieces if order == "forward" else pieces[::-1])
    (fault,) = total.faults.values()
    assert [place.line for place in fault.examples.places] == [1, 2, 3, 4, 5]
    assert fault.tokens == fault.rows == 9
