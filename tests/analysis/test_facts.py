import numpy as np
import pytest

from m2po_lab.analysis import facts, scan
from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.rows import UNKNOWN, Rows
from tests.analysis.batches import make_batch
from tests.analysis.compare import close


def logged(lengths: list[int], **rows: object) -> TokenBatch:
    """A log of rows with these lengths whose policies agree."""
    n = sum(lengths)
    same = -1.0 - np.arange(n) / 7
    version = rows.pop("version", None)
    return TokenBatch(
        behavior_logp=same,
        current_logp=same,
        version=None if version is None else np.repeat(np.asarray(version), lengths),
        lengths=np.asarray(lengths),
        rows=Rows(**rows),
    )


def test_rewards_are_means_over_rows_by_step():
    batch = logged(
        [1, 5, 2, 2],
        step=np.asarray([0, 0, 1, 1]),
        reward=np.asarray([1.0, 0.0, 0.5, np.nan]),
    )
    reward = scan([batch]).to_dict()["reward"]
    assert (reward["n"], reward["mean"], reward["low"], reward["high"]) == (3, 0.5, 0.0, 1.0)
    assert reward["std"] == pytest.approx(np.std([1.0, 0.0, 0.5]))
    assert [(s["step"], s["n"], s["mean"]) for s in reward["by_step"]] == [(0, 2, 0.5), (1, 1, 0.5)]


def test_entropy_is_a_mean_over_kept_tokens_never_of_row_means():
    batch = logged([1, 3], step=np.asarray([4, 4]))
    entropy = np.asarray([4.0, 1.0, 1.0, 99.0])
    keep = np.asarray([True, True, True, False])
    found = scan([batch.replace(entropy=entropy, keep=keep)]).to_dict()["entropy"]
    assert found == {"n": 3, "mean": 2.0, "by_step": [{"step": 4, "n": 3, "mean": 2.0}]}


def test_lengths_are_split_by_finish_reason_and_lag():
    batch = logged(
        [2, 4, 6, 8],
        finish_reason=["stop", "length", None, "stop"],
        train_version=np.asarray([9, 9, 9, 9]),
        version=[9, 8, 7, -1],
    )
    lengths = scan([batch]).to_dict()["lengths"]
    assert (lengths["unit"], lengths["n"], lengths["mean"], lengths["high"]) == ("tokens", 4, 5, 8)
    assert {k: v["n"] for k, v in lengths["by_finish_reason"].items()} == {"length": 1, "stop": 2}
    assert [(e["lag"], e["mean"]) for e in lengths["by_lag"]] == [(0, 2), (1, 4), (2, 6)]
    assert lengths["lag_correlation"] == pytest.approx(1.0)


def test_lengths_in_the_log_come_before_counted_tokens():
    batch = logged([2, 3], response_length=np.asarray([7, UNKNOWN]), length_unit="characters")
    lengths = scan([batch]).to_dict()["lengths"]
    assert (lengths["unit"], lengths["mean"]) == ("characters", 5.0)


def test_length_and_lag_are_unrelated_where_one_is_constant():
    batch = logged([3, 3], train_version=np.asarray([2, 2]), version=[1, 2])
    assert scan([batch]).to_dict()["lengths"]["lag_correlation"] is None


def test_groups_with_equal_rewards_and_mixed_prompts_are_counted():
    batch = logged(
        [1] * 6,
        step=np.zeros(6, dtype=int),
        group_id=["a", "a", "b", "b", "c", None],
        reward=np.asarray([1.0, 1.0, 0.0, 1.0, 1.0, 1.0]),
        prompt_key=np.asarray([5, 5, 6, 7, 8, 9], dtype=np.uint64),
    )
    groups = scan([batch]).to_dict()["groups"]
    assert (groups["by"], groups["n"], groups["rows"]) == ("group_id", 3, 5)
    assert groups["sizes"] == {"1": 1, "2": 2}
    assert (groups["with_rewards"], groups["constant_reward"], groups["mixed_prompts"]) == (2, 1, 1)
    assert groups["all_unique"] is False


def test_one_group_id_in_two_steps_is_two_groups():
    batch = logged([1, 1], step=np.asarray([0, 1]), group_id=["a", "a"])
    groups = scan([batch]).to_dict()["groups"]
    assert (groups["n"], groups["all_unique"]) == (2, True)


def test_groups_beyond_the_bound_are_thinned_by_their_hash(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(facts, "MOST_GROUPS", 50)
    logs = [
        logged(
            [1] * 100,
            row_id=[f"{k}/{i}" for i in range(100)],
            group_id=[f"{k}/{i // 2}" for i in range(100)],
        )
        for k in range(4)
    ]
    whole = scan(logs).to_dict()["groups"]
    assert 10 < whole["n"] <= 50
    assert whole["sampled"] in {0.25, 0.125}
    assert whole["sizes"] == {"2": whole["n"]}
    parts = scan(logs[2:]).merge(scan(logs[:2])).to_dict()["groups"]
    close(parts, whole)


def test_signal_is_the_share_of_tokens_with_an_advantage():
    batch = logged([1, 3], step=np.asarray([0, 1]))
    found = scan([batch.replace(advantage=np.asarray([0.0, 1.0, 0.0, np.nan]))]).to_dict()["signal"]
    assert (found["n"], found["nonzero_fraction"]) == (3, pytest.approx(1 / 3))
    assert [s["nonzero_fraction"] for s in found["by_step"]] == [0.0, 0.5]


def test_what_a_log_does_not_say_is_null_and_listed():
    report = scan([logged([2, 2])]).to_dict()
    assert report["reward"] is report["groups"] is report["entropy"] is report["signal"] is None
    missing = {entry["what"]: entry["needs"] for entry in report["not_computable"]}
    assert {"reward", "groups", "entropy", "signal"} <= set(missing)
    assert missing["ratios/current/behavior/by_lag"] == "version of each token and train_version"
    assert missing["ratios/proximal/behavior"] == "proximal_logp and behavior_logp"


def test_a_log_of_texts_has_rewards_lengths_and_groups():
    batch = TokenBatch(
        lengths=np.zeros(4, dtype=int),
        rows=Rows(
            step=np.asarray([1, 1, 2, 2]),
            reward=np.asarray([0.0, 1.0, 1.0, 1.0]),
            response_length=np.asarray([10, 20, 30, 40]),
            length_unit="characters",
            group_id=["a", "a", "b", "b"],
            response=["w", "x", "y", "z"],
            line=np.arange(4),
            source=["log"] * 4,
        ),
    )
    report = scan([batch]).to_dict()
    assert report["primary"] is None
    assert report["reward"]["mean"] == 0.75
    assert report["lengths"]["mean"] == 25
    assert report["groups"]["constant_reward"] == 1
    assert report["objectives"]["ppo"] is None


def test_facts_do_not_depend_on_how_the_log_was_cut():
    batches = [make_batch(seed) for seed in range(5)]
    whole, parts = scan(batches), scan(batches[3:]).merge(scan(batches[:3]))
    names = ("reward", "lengths", "groups", "entropy", "signal")
    first, second = whole.to_dict(), parts.to_dict()
    close({n: first[n] for n in names}, {n: second[n] for n in names})
