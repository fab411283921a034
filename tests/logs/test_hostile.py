"""Mutated files of every format end in rows, a counted remark, or one line; never a traceback."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.assemble import assemble
from m2po_lab.logs.detect import Unit
from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.open import Log, open_log
from m2po_lab.logs.reader import OneByOne, ReadOptions
from m2po_lab.logs.source import Source
from tests.logs.helpers import DATA

FILES = [
    "frameworks/verl/dataproto/step0.dp",
    "frameworks/verl/tq/step0_tq_batch.pt",
    "frameworks/verl/rollout_data/1.jsonl",
    "frameworks/slime/train_data/0.pt",
    "frameworks/slime/train_data_legacy/0_1.pt",
    "frameworks/skyrl/dumped_data/global_step_0_training_input.pkl",
    "frameworks/prime-rl/rollouts/step_1/rank_0.bin",
    "frameworks/nemo-rl/exp_001/train_data_step1.jsonl",
    "frameworks/martingale/tokens.db",
    "frameworks/trl/completions/completions_00001.parquet",
    "frameworks/ms-swift/completions.jsonl",
    "frameworks/atropos/rollouts.jsonl",
    "metrics/trl_1.13_log_history.json",
    "real/trl_grpo_bf16.jsonl",
]
MUTATIONS_A_FILE = 12


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed, cut out, repeated, or everything behind a place gone."""
    out = bytearray(data)
    for _ in range(int(rng.choice([1, 2, 8]))):
        start = int(rng.integers(len(out)))
        stop = min(len(out), start + int(rng.choice([1, 8, 200])))
        match rng.integers(4):
            case 0:
                out[start:stop] = rng.bytes(stop - start)
            case 1:
                del out[start:stop]
            case 2:
                out[start:start] = out[start:stop]
            case 3 if len(out) > 1:
                del out[max(start, 1) :]
    return bytes(out)


@pytest.mark.parametrize("name", FILES)
def test_a_mutated_file_never_ends_in_a_traceback(tmp_path: Path, name: str) -> None:
    data = (DATA / name).read_bytes()
    rng = np.random.default_rng(len(data))
    path = tmp_path / Path(name).name
    outcomes: set[bool] = set()
    messages: list[str] = []
    for _ in range(MUTATIONS_A_FILE):
        path.write_bytes(mutated(data, rng))
        try:
            outcomes.update(batch.n_rows > 0 for batch in open_log(path, skip_bad_rows=True))
        except UnreadableLogError as error:
            outcomes.add(False)
            messages.append(str(error))
    assert outcomes
    assert not any("\n" in message or len(message) > 600 for message in messages)


class Breaking(OneByOne):
    """A reader that gives `good` batches and then fails."""

    name = "breaking"

    def __init__(self, good: int, error: Exception) -> None:
        self.good = good
        self.error = error

    def sniff(self, source: Source) -> bool:
        return True

    def read(self, *_: Any) -> Iterator[TokenBatch]:
        for _i in range(self.good):
            yield assemble([{"behavior_logp": [-1.0]}], "x", [1])
        raise self.error


def breaking(monkeypatch: pytest.MonkeyPatch, good: int, error: Exception, skip: bool) -> Log:
    """A log of one file that breaks."""
    reader = Breaking(good, error)
    monkeypatch.setattr("m2po_lab.logs.guard.by_name", lambda _: reader)
    source = Source("x.bin", "x.bin")
    return Log([Unit("x", "breaking", (source,))], ReadOptions(skip_bad_rows=skip), "x")


@pytest.mark.parametrize("error", [KeyError("k"), ValueError("v"), TypeError("t"), OSError("o")])
def test_a_file_that_breaks_in_the_middle_is_an_error_unless_skipped(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    with pytest.raises(UnreadableLogError, match=r"x\.bin: cannot be read as breaking"):
        list(breaking(monkeypatch, 1, error, skip=False))
    log = breaking(monkeypatch, 1, error, skip=True)
    assert [batch.n_rows for batch in log] == [1]
    assert log.bad_rows == 1
    assert "x.bin" in log.inputs[0].remarks[0]


def test_a_file_system_that_fails_is_never_taken_for_a_bad_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = PermissionError(13, "Permission denied")
    with pytest.raises(UnreadableLogError, match="Permission denied"):
        list(breaking(monkeypatch, 1, error, skip=True))


def test_our_own_mistakes_are_not_taken_for_bad_content(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError):
        list(breaking(monkeypatch, 0, AssertionError("a bug"), skip=True))


def test_a_log_is_an_iterator_and_can_be_closed_early() -> None:
    log = open_log(DATA / "real" / "trl_grpo_bf16.jsonl", batch_tokens=50)
    first = next(log)
    assert first.n_rows > 0
    log.close()
    assert list(log) == []
    assert log.partial


def test_a_part_without_a_row_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"logprobs": [-1.0]}\n')
    (tmp_path / "2.jsonl").write_text('{"logprobs": [-1.0], "x\n')
    parts = open_log(tmp_path, format="jsonl").parts()
    assert [sum(b.n_rows for b in part) for part in parts] == [1, 0]
    assert [part.bad_rows for part in parts] == [0, 1]
    assert len(open_log(tmp_path, format="jsonl").parts(most=1)) == 1
