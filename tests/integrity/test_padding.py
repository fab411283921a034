"""Rows repeated to fill a batch, and answers that repeat because the policy is certain."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest

from m2po_lab.findings.values import repeated_padding
from m2po_lab.integrity import BatchIntegrity, Memory, check, checked
from m2po_lab.integrity.padding import Repeats
from tests.integrity.logs import batch

LENGTH = 12


def rows(
    answers: Sequence[int], step: int = 0, train: int = 5, **more: Any
) -> list[dict[str, Any]]:
    """One row an entry; equal entries are equal answers to one prompt."""
    found = []
    for i, answer in enumerate(answers):
        rng = np.random.default_rng(answer)
        values = (-rng.exponential(size=LENGTH)).tolist()
        name = f"s{step} r{i}"
        row = {"behavior": values, "current": values, "step": step, "train": train, "id": name}
        found.append(row | more)
    return found


def repeats(*logs: list[dict[str, Any]], size: int = 1000) -> Repeats:
    """Of logs that are read one after the other in batches of `size` rows."""
    memory = Memory()
    every = [row for log in logs for row in log]
    batches = [batch(every[i : i + size]) for i in range(0, len(every), size)]
    list(checked(batches, memory))
    return memory.rest().repeats


def fires(found: Repeats) -> bool:
    class Known:
        evidence = BatchIntegrity(repeats=found)

    return bool(list(repeated_padding(Known())))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1000, 7, 3])
@pytest.mark.parametrize("tail", [[0, 1, 2], [29, 29], [3, 17, 8, 4, 5]], ids=str)
def test_padding_is_counted_however_the_step_is_cut(tail: list[int], size: int) -> None:
    found = repeats(
        *[rows([*range(100 * s, 100 * s + 30), *(100 * s + t for t in tail)], s) for s in range(3)],
        size=size,
    )
    assert found == Repeats(tail=3 * len(tail), elsewhere=0, steps=3)
    assert fires(found)


def test_five_thousand_rows_padded_at_the_end() -> None:
    found = repeats(rows([*range(4990), *range(10)]), size=1024)
    assert found == Repeats(tail=10, elsewhere=0, steps=1)


def test_honest_repeats_within_groups_are_no_padding() -> None:
    rng = np.random.default_rng(0)
    answers = [8 * group + int(rng.integers(0, 3)) for group in range(32) for _ in range(8)]
    found = repeats(rows(answers))
    assert found.elsewhere > 100
    assert not fires(found)


def test_one_certain_group_is_no_padding() -> None:
    assert not fires(repeats(rows([0] * 8)))
    assert not fires(repeats(rows([0] * 8 + [1] * 8)))


def test_short_answers_and_a_single_medium_one_do_not_count() -> None:
    short = [
        {**row, "behavior": row["behavior"][:7], "current": row["current"][:7]}
        for row in rows([*range(20), 0, 1, 2])
    ]
    assert repeats(short) == Repeats()
    assert repeats(rows([*range(20), 4])) == Repeats(elsewhere=1)


def test_a_second_epoch_on_the_same_rows_is_no_padding() -> None:
    first, second = rows(range(16), train=5), rows(range(16), train=6)
    assert repeats(first + second) == Repeats()
    nameless = [{k: v for k, v in row.items() if k != "id"} for row in first + second]
    assert repeats(nameless) == Repeats()


def test_rows_without_ids_are_padding_too() -> None:
    nameless = [{k: v for k, v in row.items() if k != "id"} for row in rows([*range(16), 0, 1])]
    assert repeats(nameless) == Repeats(tail=2, elsewhere=0, steps=1)


def test_equal_answers_in_two_steps_or_files_are_no_padding() -> None:
    assert repeats(rows(range(10), 0), rows([*range(20, 28), 0, 1], 1)) == Repeats()
    files = rows(range(10), source="a") + rows([*range(20, 28), 0, 1], source="b")
    assert repeats(files) == Repeats()


def test_a_batch_alone_says_the_same() -> None:
    log = batch(rows([*range(16), 0, 1]))
    assert check(log)[1].repeats == Repeats(tail=2, elsewhere=0, steps=1)
    whole = reduce(add, (evidence for _, evidence in checked([log])), BatchIntegrity())
    assert whole.repeats == Repeats()


def test_a_toy_run_that_becomes_certain_repeats_itself_honestly(tmp_path: Any) -> None:
    from m2po_lab.logs import open_log
    from toy_envs.recipes import Run
    from toy_envs.train import train

    train(Run(recipe="bandit", objective="is", staleness=0, seed=3, steps=24), tmp_path)
    memory = Memory()
    list(checked(open_log(tmp_path / "log"), memory))
    found = memory.rest().repeats
    assert found.elsewhere > 200
    assert not fires(found)
