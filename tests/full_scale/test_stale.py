"""The Stale-k sampler on a queue that stands still."""

import pytest
import transfer_queue as tq

from full_scale.verl_plugin.stale import StaleK, ages

STALENESS = 2


def sampler(**changes):
    settings = {
        "trainer_mode": "colocate_async",
        "trainer_config": {"num_warmup_batches": STALENESS},
        "max_off_policy_threshold": None,
        "max_off_policy_strategy": "drop",
        "sampler_kwargs": {},
    }
    return StaleK(**settings | changes)


class Queue:
    """What TransferQueue knows: prompts with their status, and answers with their versions."""

    def __init__(self, monkeypatch):
        self.items = {}
        monkeypatch.setattr(tq, "kv_list", lambda: {"train": dict(self.items)})
        monkeypatch.setattr(tq, "kv_clear", self.clear)

    def clear(self, keys, partition_id):
        for key in keys:
            self.items.pop(key, None)

    def add(self, uid, step, version, *, status="finished", prompt=True):
        if prompt:
            self.items[uid] = {"is_prompt": True, "status": status, "global_steps": step}
        tag = {"min_global_steps": version, "max_global_steps": version}
        self.items[f"{uid}_0_0"] = tag


@pytest.fixture
def queue(monkeypatch):
    return Queue(monkeypatch)


def test_the_oldest_batch_is_taken_with_its_age(queue):
    for step in (3, 4, 5):
        for i in range(2):
            queue.add(f"prompt{step}{i}", step, step - 1)
    batch, metrics = sampler().sample(global_steps=5, partition_id="train", batch_size=2)
    assert sorted(batch.keys) == ["prompt30_0_0", "prompt31_0_0"]
    assert metrics == {"training/stale_k/low": 2, "training/stale_k/high": 2}


def test_nothing_is_taken_while_something_is_being_sampled(queue, monkeypatch):
    queue.add("old", 3, 2)
    queue.add("new", 5, 4, status="running")
    buffer = sampler()
    waits = []

    def wait(partition_id, last):
        waits.append(partition_id)
        queue.items["new"]["status"] = "finished"
        return last

    monkeypatch.setattr(buffer, "_wait_for_next_poll", wait)
    batch, _ = buffer.sample(global_steps=5, partition_id="train", batch_size=1)
    assert (batch.keys, waits) == (["old_0_0"], ["train"])


def test_answers_whose_prompts_were_trained_before_the_checkpoint_are_dropped(queue):
    queue.add("trained", 2, 1, prompt=False)
    queue.add("waiting", 3, 2)
    batch, _ = sampler().sample(global_steps=5, partition_id="train", batch_size=1)
    assert batch.keys == ["waiting_0_0"]
    assert "trained_0_0" not in queue.items


def test_a_batch_older_than_k_is_refused(queue):
    queue.add("older", 1, 0)
    with pytest.raises(RuntimeError, match="4 versions old"):
        sampler().sample(global_steps=5, partition_id="train", batch_size=1)


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"trainer_mode": "separate_async"}, "colocate_async"),
        ({"max_off_policy_threshold": 4}, "set null"),
        ({"trainer_config": {"num_warmup_batches": 1.5}}, "whole number"),
    ],
)
def test_settings_that_would_make_the_age_vary_are_refused(changes, remedy):
    with pytest.raises(ValueError, match=remedy):
        sampler(**changes)


def test_ages_span_the_newest_and_the_oldest_token():
    tags = [
        {"min_global_steps": 1, "max_global_steps": 3},
        {"min_global_steps": 2, "max_global_steps": 2},
    ]
    assert ages(tags, version=5) == (2, 4)
