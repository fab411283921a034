"""Rank files: copies, stages without log-probs and zig-zag slices give each token once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.logs.readers.slime_ranks import slices
from tests.logs.helpers import DATA, read

torch = pytest.importorskip("torch")

LENGTHS = [(40, 17), (33, 33 - 5), (9, 4)]
"""(prompt and response, response) of the samples."""


def samples(seed: int = 0) -> list[dict[str, Any]]:
    """Whole samples of one data-parallel shard."""
    rng = np.random.default_rng(seed)
    return [
        {
            "tokens": rng.integers(0, 999, total),
            "loss_masks": np.ones(response, dtype=np.int32),
            "response_lengths": response,
            "total_lengths": total,
            **{k: -rng.random(response) for k in ("log_probs", "rollout_log_probs", "advantages")},
        }
        for total, response in LENGTHS
    ]


def rank_file(directory: Path, rank: int, rows: list[dict[str, Any]], **extra: Any) -> None:
    """Write one rank's dump."""
    columns = {k: [r[k] for r in rows] for k in rows[0]}
    data = {
        k: [torch.as_tensor(v) if isinstance(v, np.ndarray) else v for v in column]
        for k, column in columns.items()
    }
    dump = {"rollout_id": 7, "rank": rank, "rollout_data": data, **extra}
    torch.save(dump, directory / f"7_{rank}.pt")


def owned(total: int, response: int, rank: int, size: int) -> list[int]:
    """Response positions a context rank scores, by going through every position in turn."""
    prompt, chunk = total - response, -(-total // (2 * size))
    mine = [rank, 2 * size - 1 - rank]
    return [
        position - prompt
        for block in mine
        for position in range(prompt, total)
        if (position - 1) // chunk == block
    ]


def sliced(rows: list[dict[str, Any]], rank: int, size: int) -> list[dict[str, Any]]:
    """The rows as a context-parallel rank holds them."""
    out = []
    for row in rows:
        mine = owned(row["total_lengths"], row["response_lengths"], rank, size)
        cut = {k: row[k][mine] for k in ("log_probs", "rollout_log_probs", "advantages")}
        out.append(row | cut)
    return out


@given(st.integers(2, 60), st.data(), st.integers(2, 4))
@settings(max_examples=60)
def test_the_slices_of_all_ranks_cover_every_response_token_once(
    total: int, data: st.DataObject, size: int
) -> None:
    response = data.draw(st.integers(1, total - 1))
    covered: list[int] = []
    for rank in range(size):
        spans = slices(total, response, rank, size)
        mine = [i for start, stop in spans for i in range(start, stop)]
        assert mine == owned(total, response, rank, size)
        covered += mine
    assert sorted(covered) == list(range(response))


@pytest.mark.parametrize("stated", [True, False], ids=["stated", "inferred"])
def test_zig_zag_slices_are_put_together(tmp_path: Path, stated: bool) -> None:
    whole = samples()
    for rank in range(3):
        extra = {"cp_rank": rank, "cp_size": 3, "qkv_format": "thd"} if stated else {}
        rank_file(tmp_path, rank, sliced(whole, rank, 3), **extra)
    batch, log = read(tmp_path)
    assert batch.lengths.tolist() == [r["response_lengths"] for r in whole]
    for field, name in [("proximal_logp", "log_probs"), ("behavior_logp", "rollout_log_probs")]:
        assert np.array_equal(getattr(batch, field), np.concatenate([r[name] for r in whole]))
    assert set(batch.rows.step.tolist()) == {7}
    assert any("context-parallel" in r for r in log.inputs[0].remarks)


def test_a_missing_context_rank_leaves_its_tokens_unknown_and_is_named(tmp_path: Path) -> None:
    whole = samples()
    rank_file(tmp_path, 0, sliced(whole, 0, 2), cp_rank=0, cp_size=2, qkv_format="thd")
    batch, log = read(tmp_path)
    known = np.isfinite(batch.behavior_logp)
    assert 0 < known.sum() < len(known)
    assert any("missing" in r for r in log.inputs[0].remarks)


def test_a_pipeline_stage_without_log_probs_is_left_out(tmp_path: Path) -> None:
    whole = samples()
    rank_file(tmp_path, 0, [{k: v for k, v in r.items() if k != "log_probs"} for r in whole])
    rank_file(tmp_path, 1, whole)
    batch, log = read(tmp_path)
    assert batch.n_rows == len(whole)
    assert batch.available_ratios() == ("proximal/behavior",)
    assert any("pipeline" in r for r in log.inputs[0].remarks)


def test_tensor_parallel_copies_are_given_as_rows_with_the_same_content(tmp_path: Path) -> None:
    whole = samples()
    for rank in range(2):
        rank_file(tmp_path, rank, whole)
    rows = read(tmp_path)[0].rows
    half = len(whole)
    assert rows.content[:half].tolist() == rows.content[half:].tolist()
    assert {Path(s).name for s in rows.source} == {"7_0.pt", "7_1.pt"}


def test_data_parallel_shards_are_different_rows(tmp_path: Path) -> None:
    rank_file(tmp_path, 0, samples(0))
    rank_file(tmp_path, 1, samples(1))
    rows = read(tmp_path)[0].rows
    assert len(set(rows.content.tolist())) == 2 * len(LENGTHS)


@pytest.mark.parametrize(("batch", "shards"), [(6, 2), (3, 1)], ids=["equal by chance", "copies"])
def test_the_size_of_the_batch_tells_equal_shards_from_copies(
    tmp_path: Path, batch: int, shards: int
) -> None:
    whole = samples()
    for rank in range(2):
        rank_file(tmp_path, rank, whole)
        path = tmp_path / f"7_{rank}.pt"
        dump = torch.load(path, weights_only=False)
        dump["rollout_data"]["raw_reward"] = [1.0] * batch
        torch.save(dump, path)
    rows = read(tmp_path)[0].rows
    assert len(set(rows.row_id)) == shards * len(whole)


def test_the_runs_legacy_dump_holds_equal_shards_that_are_no_copies() -> None:
    batch, _ = read(DATA / "frameworks" / "slime" / "train_data_legacy")
    keys = set(zip(batch.rows.row_id, batch.rows.step.tolist(), strict=True))
    assert len(keys) == batch.n_rows == 32
