"""Every framework's layout of one run gives the same numbers; text dumps say what they lack."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.open import open_log
from tests.logs.helpers import DATA, count_and_m2, read

FRAMEWORKS = DATA / "frameworks"
EXPECTED = json.loads((FRAMEWORKS / "EXPECTED.json").read_text())["steps"]
TOKEN_LEVEL = {
    "verl/dataproto": ("verl-dataproto", "proximal/behavior", 0),
    "verl/tq": ("verl-transferqueue", "proximal/behavior", 0),
    "slime/train_data": ("slime", "proximal/behavior", 0),
    "slime/train_data_legacy": ("slime", "proximal/behavior", 0),
    "prime-rl/token_exports": ("prime-rl", "current/behavior", 0),
    "nemo-rl": ("nemo-rl", "proximal/behavior", 1),
    "skyrl": ("skyrl", "proximal/behavior", 0),
}
"""Directory -> reader, ratio it holds, how far its step numbers are ahead."""

TEXT_ONLY = {
    "verl/rollout_data": ("verl-generations", "calculate_log_probs=True"),
    "trl": ("trl-completions", "vllm_importance_sampling_correction=True"),
    "ms-swift": ("ms-swift", "--log_rollout_offpolicy_metrics"),
    "roll": ("roll", "infer_logprobs"),
    "areal": ("areal", "prox_logp"),
    "open-instruct": ("open-instruct", "trainer"),
    "atropos": ("atropos", "trainer_logprobs"),
    "slime/rollout_data": ("slime", "--save-debug-train-data"),
    "prime-rl/rollouts": ("prime-rl", "enable_token_export"),
}
"""Directory -> reader, and a part of the flag that would log what is missing."""


def by_step(path: Path, ratio: str) -> dict[int, tuple[int, float]]:
    """Kept tokens and second moment of every step."""
    batch, _ = read(path)
    steps = np.asarray(batch.spread(batch.rows.step))
    return {
        int(s): count_and_m2(batch.replace(keep=batch.keep & (steps == s)), ratio)
        for s in np.unique(batch.rows.step)
    }


@pytest.mark.parametrize("layout", TOKEN_LEVEL)
def test_every_token_level_layout_gives_the_runs_numbers_step_by_step(layout: str) -> None:
    name, ratio, ahead = TOKEN_LEVEL[layout]
    assert {part.units[0].format for part in open_log(FRAMEWORKS / layout).parts()} == {name}
    found = by_step(FRAMEWORKS / layout, ratio)
    assert sorted(found) == [step + ahead for step in range(4)]
    for step, (n, m2) in found.items():
        truth = EXPECTED[str(step - ahead)]
        assert n == truth["n"]
        assert m2 == pytest.approx(truth["M2"], abs=2e-4)


def test_the_ledger_gives_the_numbers_of_all_eight_steps_and_their_lags() -> None:
    found = by_step(FRAMEWORKS / "martingale", "current/behavior")
    assert sorted(found) == list(range(16))
    for step, truth in EXPECTED.items():
        assert found[int(step)] == (truth["n"], pytest.approx(truth["M2"]))
    batch, _ = read(FRAMEWORKS / "martingale")
    lags = batch.spread(batch.rows.train_version) - batch.version
    steps = batch.spread(batch.rows.step)
    assert {int(s): set(lags[steps == s].tolist()) for s in range(8)} == {
        s: {EXPECTED[str(s)]["lag"]} for s in range(8)
    }


def test_the_ledger_and_its_flat_copy_hold_the_same_tokens() -> None:
    ledger, _ = read(FRAMEWORKS / "martingale")
    flat, _ = read(DATA / "real" / "trl_grpo_bf16.jsonl")
    for name in ("behavior_logp", "current_logp", "advantage", "version"):
        assert np.array_equal(getattr(ledger, name), getattr(flat, name)), name
    assert ledger.rows.row_id == flat.rows.row_id
    assert np.array_equal(ledger.rows.content, flat.rows.content)


@pytest.mark.parametrize("layout", TOKEN_LEVEL)
def test_prompts_and_padding_are_cut_off(layout: str) -> None:
    batch, log = read(FRAMEWORKS / layout)
    assert batch.keep.all()
    assert batch.n_rows == log.inputs[0].rows == 32
    assert batch.rows.token_ids.tolist()[:3] == [20, 16, 151645]
    if batch.rows.prompt_length is not None:
        assert set(batch.rows.prompt_length.tolist()) == {45}
    assert not batch.rows.unaligned.any()
    assert np.isfinite(batch.behavior_logp).all()


@pytest.mark.parametrize("layout", TEXT_ONLY)
def test_dumps_without_a_pair_of_log_probs_name_the_flag_that_would_give_it(layout: str) -> None:
    name, flag = TEXT_ONLY[layout]
    batch, log = read(FRAMEWORKS / layout)
    assert log.inputs[0].format == name
    assert batch.available_ratios() == ()
    assert flag in log.missing_flag


@pytest.mark.parametrize("layout", [n for n in TEXT_ONLY if not n.startswith("prime-rl")])
def test_text_dumps_still_give_rewards_lengths_and_groups(layout: str) -> None:
    rows = read(FRAMEWORKS / layout)[0].rows
    assert set(rows.reward.tolist()) <= {0.0, 1.0}
    assert (rows.response_length > 0).all()
    assert all(group is not None for group in rows.group_id)
    assert rows.step is None or rows.step[0] == 0


def test_a_null_reward_function_is_no_zero() -> None:
    rows = read(FRAMEWORKS / "trl")[0].rows
    assert not np.isnan(rows.reward).any()
    assert rows.advantage[0] == pytest.approx(0.3534534)
    assert len(set(rows.group_id)) == 8


def test_reader_names_are_unique_and_every_one_can_be_forced() -> None:
    from m2po_lab.logs.registry import READERS, by_name

    assert len({reader.name for reader in READERS}) == len(READERS)
    assert all(by_name(reader.name) is reader for reader in READERS)


def test_a_forced_reader_that_does_not_fit_is_one_line() -> None:
    path = DATA / "real" / "trl_grpo_bf16.jsonl"
    for name in ("slime", "verl-dataproto", "skyrl", "martingale", "native"):
        with pytest.raises(UnreadableLogError) as caught:
            list(open_log(path, format=name))
        assert "\n" not in str(caught.value)


def slime_run(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Both dumps of slime under one folder, and an evaluation; samples of either, in order."""
    torch = pytest.importorskip("torch")
    for name in ("rollout_data", "train_data"):
        shutil.copytree(FRAMEWORKS / "slime" / name, folder / name)
    shutil.copy(folder / "rollout_data" / "0.pt", folder / "rollout_data" / "eval_0.pt")
    rollout, train = (
        [
            sample
            for i in range(4)
            for sample in torch.load(folder / name / f"{i}.pt", weights_only=False)["samples"]
        ]
        for name in ("rollout_data", "train_data")
    )
    return rollout, train


def test_slime_rollouts_give_the_train_dump_groups_versions_and_rewards(tmp_path: Path) -> None:
    rollout, train = slime_run(tmp_path)
    batch, log = read(tmp_path)
    rows = batch.rows
    assert batch.n_rows == len(train) == len(rollout) == 32
    assert [s["index"] for s in rollout] == [s["sample_index"] for s in train]
    for field in ("reward", "response", "prompt"):
        assert list(getattr(rows, field)) == [s[field] for s in rollout], field
    assert rows.finish_reason == [s["status"] for s in rollout]
    assert rows.group_id == [str(s["group_index"]) for s in rollout]
    assert rows.row_id == [str(s["sample_index"]) for s in train]
    assert rows.step.tolist() == [i // 8 for i in range(32)]
    versions = [int(s["weight_versions"][0]) for s in rollout]
    assert batch.version.tolist() == np.repeat(versions, batch.lengths).tolist()
    assert rows.response_length.tolist() == [s["response_lengths"] for s in train]
    assert any("evaluation" in remark for remark in log.inputs[0].remarks)


def test_slime_train_dump_gives_the_numbers_and_the_rollouts_only_what_it_lacks(
    tmp_path: Path,
) -> None:
    rollout, train = slime_run(tmp_path)
    batch = read(tmp_path)[0]
    for field, name in (
        ("behavior_logp", "rollout_log_probs"),
        ("proximal_logp", "log_probs"),
        ("advantage", "advantages"),
    ):
        want = np.concatenate([s[name].numpy() for s in train])
        assert np.array_equal(getattr(batch, field).astype(np.float32), want), field
    tokens = [s["tokens"][-s["response_lengths"] :].tolist() for s in train]
    assert batch.rows.token_ids.tolist() == [t for row in tokens for t in row]
    assert rollout[0]["reward"] != pytest.approx(float(train[0]["rewards"]))
    alone = read(tmp_path / "train_data")[0]
    assert alone.rows.response is None
    assert alone.version is None
    assert np.array_equal(alone.proximal_logp, batch.proximal_logp)


def test_prime_rl_leaves_out_a_step_that_is_still_being_written(tmp_path: Path) -> None:
    shutil.copytree(FRAMEWORKS / "prime-rl", tmp_path / "run")
    (tmp_path / "run" / "token_exports" / "step_3" / "STABLE").unlink()
    batch, log = read(tmp_path / "run")
    assert sorted(set(batch.rows.step.tolist())) == [0, 1, 2]
    assert any("[3]" in remark for remark in log.inputs[0].remarks)
    masked = next(m for m in log.metrics if m.name == "prime-rl/is_masked_fraction")
    assert masked.step.tolist() == [0, 1, 2]
    assert masked.value[2] == pytest.approx(1 / 34)


def test_prime_rl_without_a_ready_step_says_so(tmp_path: Path) -> None:
    shutil.copytree(FRAMEWORKS / "prime-rl" / "token_exports", tmp_path / "run")
    for mark in tmp_path.rglob("STABLE"):
        mark.unlink()
    with pytest.raises(UnreadableLogError, match="STABLE"):
        list(open_log(tmp_path / "run"))


def test_nemo_masks_a_sample_as_a_whole(tmp_path: Path) -> None:
    line = (FRAMEWORKS / "nemo-rl/exp_001/train_data_step1.jsonl").read_text().splitlines()[0]
    item: dict[str, Any] = json.loads(line) | {"sample_loss_mask": [0.0]}
    path = tmp_path / "train_data_step1.jsonl"
    path.write_text(line + "\n" + json.dumps(item) + "\n")
    batch, _ = read(path)
    assert batch.row_counts.tolist() == [3, 0]


def test_atropos_prompt_sentinels_are_prompts_not_tokens() -> None:
    batch, _ = read(FRAMEWORKS / "atropos")
    assert (batch.behavior_logp <= 0).all()
    assert batch.n_rows == 32


def test_areal_files_are_tasks_not_steps() -> None:
    rows = read(FRAMEWORKS / "areal")[0].rows
    assert set(rows.step.tolist()) == {0}
    assert sorted(set(rows.group_id)) == ["0", "1"]
    assert rows.response_length.tolist()[0] == 3
