"""Stale-k for verl's v1 trainer: every batch was sampled exactly k weight versions earlier.

    trainer.v1.trainer_mode=colocate_async
    trainer.v1.colocate_async.num_warmup_batches=K
    trainer.v1.sampler.max_off_policy_threshold=null
    trainer.v1.sampler.custom_sampler.path=pkg://full_scale.verl_plugin.stale
    trainer.v1.sampler.custom_sampler.name=StaleK

K batches are sampled before the first step and each step adds one, so the queue holds K + 1 when a
step takes the oldest. The first K steps go up from 0 to K, as the first batches all come from the
first weights. The queue is part of verl's checkpoint, and so is the age of what lies in it.
"""

from typing import Any

import transfer_queue as tq
from verl.trainer.ppo.v1.replay_buffer import ReplayBufferAsync

POLL_SECONDS = 0.2
TRAIN = "train"
KEY = "trainer.v1.colocate_async.num_warmup_batches"


class StaleK(ReplayBufferAsync):
    """Waits until nothing is being sampled, then takes the oldest batch."""

    def __init__(self, **settings: Any) -> None:
        """Take verl's settings.

        Raises:
            ValueError: settings under which the age of a batch would not be k.
        """
        super().__init__(**settings)
        self.poll_interval = POLL_SECONDS
        if self.trainer_mode != "colocate_async":
            raise ValueError(
                f"Stale-k with trainer.v1.trainer_mode={self.trainer_mode}: other modes sample "
                "while they train, so that the age of a batch depends on timing; set colocate_async"
            )
        if self.max_off_policy_threshold is not None:
            raise ValueError(
                "Stale-k with trainer.v1.sampler.max_off_policy_threshold="
                f"{self.max_off_policy_threshold}, which drops or awaits what is to be stale; "
                "set null"
            )
        warmup = self.trainer_config["num_warmup_batches"]
        if int(warmup) != warmup or warmup < 0:
            raise ValueError(f"{KEY}={warmup}: Stale-k needs a whole number of batches")
        self.staleness = int(warmup)
        self._restored = True

    def _sync_metadata_from_transfer_queue(self) -> None:
        """Read the queue; the first time, drop what a checkpoint holds of a batch it trained on.

        verl saves between the update and the removal of its batch: the answers are saved without
        their prompts, and nothing would ever take them.
        """
        super()._sync_metadata_from_transfer_queue()
        if not self._restored:
            return
        self._restored = False
        prompts = self.prompt_global_steps[TRAIN]
        orphans = [key for key in self.partitions[TRAIN] if key.split("_")[0] not in prompts]
        if orphans:
            tq.kv_clear(partition_id=TRAIN, keys=orphans)
            for key in orphans:
                del self.partitions[TRAIN][key]

    def _has_enough_samples(
        self, global_steps: int, partition_id: str, batch_size: int, sampleable_keys: set[str]
    ) -> bool:
        """Only when everything that was asked for is there: then it has one version."""
        if self.pending_keys[partition_id] or self.running_keys[partition_id]:
            return False
        return len(sampleable_keys) >= batch_size

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[Any, dict]:
        """Take the oldest batch, with its age as `training/stale_k/low` and `high`.

        Raises:
            RuntimeError: it is older than k, which only a queue from other settings can be.
        """
        batch, metrics = super().sample(global_steps, partition_id, batch_size)
        if partition_id != TRAIN:
            return batch, metrics
        low, high = ages(batch.tags, version=global_steps - 1)
        if high > self.staleness:
            raise RuntimeError(
                f"step {global_steps}: the oldest batch is {high} versions old and {KEY}="
                f"{self.staleness}; the restored queue was filled under a larger one: use that, or "
                "a new trainer.default_local_dir"
            )
        metrics |= {"training/stale_k/low": low, "training/stale_k/high": high}
        return batch, metrics


def ages(tags: list[dict[str, Any]], version: int) -> tuple[int, int]:
    """Smallest and largest number of versions between the rows' sampler and `version`."""
    newest = max(tag["max_global_steps"] for tag in tags)
    oldest = min(tag["min_global_steps"] for tag in tags)
    return version - newest, version - oldest
