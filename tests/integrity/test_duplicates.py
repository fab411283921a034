"""Identity decides what is a duplicate; content alone never does."""

from functools import reduce
from operator import add
from typing import Any

import numpy as np

from m2po_lab.integrity import BatchIntegrity, check, checked
from m2po_lab.integrity.duplicates import Keys
from m2po_lab.logs.hashing import mix
from tests.integrity.logs import batch

ROW: dict[str, Any] = {
    "behavior": [-1.0, -2.0],
    "proximal": [-1.1, -2.1],
    "current": [-1.2, -2.2],
    "id": "r",
    "step": 3,
    "train": 7,
}


def duplicates(*rows: dict[str, Any]) -> int:
    return check(batch(list(rows)))[1].rows.duplicate


def stream(*batches: Any) -> BatchIntegrity:
    return reduce(add, (evidence for _, evidence in checked(batches)))


def test_equal_content_under_another_id_is_no_duplicate() -> None:
    assert duplicates(ROW, {**ROW, "id": "s"}) == 0


def test_the_same_row_scored_by_another_version_or_in_another_step_is_none() -> None:
    assert duplicates(ROW, {**ROW, "train": 8}) == 0
    assert duplicates(ROW, {**ROW, "step": 4}) == 0


def test_the_same_id_with_other_content_is_none() -> None:
    assert duplicates(ROW, {**ROW, "behavior": [-1.0, -2.5]}) == 0


def test_replicas_that_differ_by_kernel_noise_under_the_same_weights_are_duplicates() -> None:
    assert duplicates(ROW, {**ROW, "current": [-1.2001, -2.2]}) == 1


def test_rows_without_ids_are_no_duplicates_of_each_other() -> None:
    nameless = {name: value for name, value in ROW.items() if name != "id"}
    assert duplicates(nameless, nameless, nameless) == 0


def rank(source: str, *values: float) -> list[dict[str, Any]]:
    nameless = {name: value for name, value in ROW.items() if name != "id"}
    return [{**nameless, "behavior": [v, v], "source": source} for v in values]


def test_a_file_without_ids_that_repeats_another_is_counted_once() -> None:
    first, copy = rank("0.pt", -1.0, -2.0, -3.0), rank("1.pt", -1.0, -2.0, -3.0)
    assert stream(batch(first), batch(copy)).rows.duplicate == 3
    assert stream(batch(first + copy)).rows.duplicate == 3
    split = (batch(first), batch(copy[:1]), batch(copy[1:]))
    assert stream(*split).rows.duplicate == 3


def test_a_file_that_begins_like_another_is_no_copy() -> None:
    first = rank("0.pt", -1.0, -2.0, -3.0)
    assert stream(batch(first), batch(rank("1.pt", -1.0, -2.0))).rows.duplicate == 0
    assert stream(batch(first), batch(rank("1.pt", -1.0, -2.0, -4.0))).rows.duplicate == 0
    longer = rank("1.pt", -1.0, -2.0, -3.0, -4.0)
    assert stream(batch(first), batch(longer[:2]), batch(longer[2:])).rows.duplicate == 0


def test_one_row_files_and_files_of_other_steps_are_no_copies() -> None:
    assert stream(batch(rank("0.pt", -1.0)), batch(rank("1.pt", -1.0))).rows.duplicate == 0
    later = [{**row, "step": 4} for row in rank("1.pt", -1.0, -2.0)]
    assert stream(batch(rank("0.pt", -1.0, -2.0)), batch(later)).rows.duplicate == 0


def test_telling_copies_keeps_every_batch_in_order() -> None:
    batches = [batch(rank(f"{i % 3}.pt", -1.0, -2.0, -float(i))) for i in range(7)]
    assert [clean.n_rows for clean, _ in checked(batches)] == [3] * 7


def test_keys_are_a_set_whatever_the_order_of_merging() -> None:
    blocks = [mix(np.arange(i, i + 50, dtype=np.uint64)) for i in range(0, 400, 30)]
    keys = [Keys((np.sort(block),)) for block in blocks]
    forward, backward = reduce(add, keys, Keys()), reduce(add, keys[::-1], Keys())
    every = np.unique(np.concatenate(blocks))
    for merged in (forward, backward):
        assert sum(map(len, merged.blocks)) == every.size
        assert merged.contains(every).all()
        assert not merged.contains(mix(np.arange(1000, 1100, dtype=np.uint64))).any()
        assert merged.repeated == sum(map(len, blocks)) - every.size
