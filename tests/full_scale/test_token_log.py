"""The token log by itself: what is written, what is left out, and what happens on a full disk."""

from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tensordict import NonTensorStack, TensorDict

from full_scale.verl_plugin import M2POLossConfig
from full_scale.verl_plugin.mini_batch import MiniBatch
from full_scale.verl_plugin.tape import Judged
from full_scale.verl_plugin.token_log import TokenLog, sampled
from m2po_lab.core import TokenBatch

LENGTHS = (2, 4, 3)
ORDER = (2, 0, 1)


def nested(rows):
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


@pytest.fixture
def mini():
    """Three rows whose values say where they belong: row + position / 10."""
    where = [torch.arange(n) / 10 + row for row, n in enumerate(LENGTHS)]
    data = TensorDict(
        {
            "responses": nested([(10 * w).long() for w in where]),
            "rm_scores": nested([torch.cat([0 * w[1:], w[:1] + 1]) for w in where]),
        },
        batch_size=3,
    )
    data["uid"] = NonTensorStack("a", "a", "b")
    data["session_id"] = NonTensorStack(0, 1, 0)
    data["extra_fields"] = NonTensorStack(
        {"min_global_steps": 3, "max_global_steps": 3},
        {"min_global_steps": 3, "max_global_steps": 4},
        {},
    )
    padded = torch.nested.to_padded_tensor(nested(where), 0)
    keep = torch.arange(4) < torch.tensor(LENGTHS)[:, None]
    # bfloat16, as verl infers under autocast: numpy has no such type.
    batch = TokenBatch(
        behavior_logp=-padded, proximal_logp=-padded.bfloat16(), advantage=padded, keep=keep
    )
    return MiniBatch(data, batch, torch.arange(7, 10), decoupled=True)


@pytest.fixture
def tape(mini):
    """Micro-batches in another order than the rows, as dynamic batching makes them."""
    judged = []
    for row in ORDER:
        one = TokenBatch(
            behavior_logp=mini.batch.behavior_logp[row : row + 1, : LENGTHS[row]],
            current_logp=mini.batch.behavior_logp[row : row + 1, : LENGTHS[row]] - 1,
            advantage=mini.batch.advantage[row : row + 1, : LENGTHS[row]],
        )
        judged.append(Judged(mini.rows[row : row + 1], one, one.keep))
    return SimpleNamespace(judged=judged)


def log_of(folder, **settings):
    return TokenLog(M2POLossConfig(log_dir=str(folder), **settings), rank=3)


def test_rows_are_whole_and_in_their_order_whatever_the_micro_batches(tmp_path, mini, tape):
    log = log_of(tmp_path)
    log.write(mini, tape, step=5, mini_batch=1, version=4)
    log.flush()
    rows = pq.read_table(tmp_path / "step_0000005_mini_001_rank_00003.parquet").to_pylist()
    assert [row["row_id"] for row in rows] == ["a_0", "a_1", "b_0"]
    assert [row["reward"] for row in rows] == [1, 2, 3]
    assert [row["version"] for row in rows] == [[3, 3], [-1] * 4, [-1] * 3]
    for i, row in enumerate(rows):
        place = i + np.arange(LENGTHS[i]) / 10
        np.testing.assert_allclose(row["behavior_logp"], -place, rtol=1e-6)
        np.testing.assert_allclose(row["proximal_logp"], -place, rtol=2**-8)
        np.testing.assert_allclose(row["current_logp"], -place - 1, rtol=1e-6)
        assert (row["step"], row["mini_batch"], row["train_version"]) == (5, 1, 4)


def test_a_fraction_of_the_rows_is_the_same_in_every_run(tmp_path, mini, tape):
    ids = [f"row {i}" for i in range(4000)]
    chosen = sampled(ids, 0.25)
    assert 0.2 < chosen.mean() < 0.3
    np.testing.assert_array_equal(chosen[::-1], sampled(ids[::-1], 0.25))
    assert (sampled(ids, 0.5) >= chosen).all()
    log = log_of(tmp_path, log_rows=0.5)
    log.write(mini, tape, step=1, mini_batch=0, version=0)
    log.flush()
    written = pq.read_table(next(tmp_path.glob("*.parquet")))["row_id"].to_pylist()
    kept = sampled(["a_0", "a_1", "b_0"], 0.5)
    assert written == [i for i, keep in zip(["a_0", "a_1", "b_0"], kept, strict=True) if keep]


def test_every_nth_step_is_due():
    log = TokenLog.__new__(TokenLog)
    log.settings = M2POLossConfig(log_every=3)
    assert [step for step in range(1, 9) if log.due(step)] == [1, 4, 7]


def test_a_disk_that_refuses_stops_the_training_with_a_remedy(tmp_path, mini, tape, monkeypatch):
    log = log_of(tmp_path)

    def refuse(*unused, **columns):
        raise OSError("No space left on device")

    monkeypatch.setattr(log._writer, "write", refuse)
    log.write(mini, tape, step=1, mini_batch=0, version=0)
    with pytest.raises(RuntimeError, match=r"No space left.*log_dir=null"):
        log.flush()
    with pytest.raises(RuntimeError, match="No space left"):
        log.write(mini, tape, step=2, mini_batch=0, version=1)
