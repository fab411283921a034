"""The job that is checked: a recipe and verl's configuration of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from full_scale.recipes import Recipe


@dataclass(frozen=True)
class Job:
    """What the checks look at.

    Attributes:
        recipe: as the table has it.
        by_hand: overrides that were given besides.
        config: verl's whole configuration of both.
    """

    recipe: Recipe
    by_hand: Sequence[str]
    config: Any

    def at(self, key: str) -> Any:
        """Value of a key of verl's configuration, None if there is none."""
        from omegaconf import OmegaConf

        return OmegaConf.select(self.config, key)

    def set_by_hand(self, key: str) -> bool:
        """Whether an override names this key."""
        return any(each.lstrip("+").startswith(f"{key}=") for each in self.by_hand)

    @property
    def on_cpu(self) -> bool:
        """Whether the job runs without an accelerator, as the tests of the plugin do."""
        return bool(self.at("trainer.device") == "cpu")

    @property
    def gpus(self) -> int:
        """GPUs of all nodes."""
        return int(self.at("trainer.nnodes") * self.at("trainer.n_gpus_per_node"))

    @property
    def data_parallel(self) -> int:
        """Ranks that hold different rows of a mini-batch."""
        sequence = self.at("actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size")
        return self.gpus // max(int(sequence or 1), 1)

    @property
    def updates_per_step(self) -> float:
        """Optimizer updates on each rollout batch."""
        actor = self.config.actor_rollout_ref.actor
        batches = self.config.data.train_batch_size / actor.ppo_mini_batch_size
        return float(batches * actor.ppo_epochs)

    @property
    def warmup(self) -> float:
        """Rollout batches that are sampled before the first step."""
        mode = self.at("trainer.v1.trainer_mode")
        return float(self.at(f"trainer.v1.{mode}.num_warmup_batches") or 0)

    @property
    def effective(self) -> Recipe:
        """The recipe with what the overrides changed of it."""
        data, rollout = self.config.data, self.config.actor_rollout_ref.rollout
        actor, trainer = self.config.actor_rollout_ref.actor, self.config.trainer
        return replace(
            self.recipe,
            staleness=round(self.warmup * self.updates_per_step),
            budget=self.at("actor_rollout_ref.actor.policy_loss.budget"),
            nodes=trainer.nnodes,
            gpus_per_node=trainer.n_gpus_per_node,
            tensor_parallel=rollout.tensor_model_parallel_size,
            train_batch_size=data.train_batch_size,
            samples=rollout.n,
            mini_batch_size=actor.ppo_mini_batch_size,
            max_prompt_length=data.max_prompt_length,
            max_response_length=data.max_response_length,
            tokens_per_gpu=actor.ppo_max_token_len_per_gpu,
            gpu_memory_utilization=rollout.gpu_memory_utilization,
            offload=actor.fsdp_config.optimizer_offload,
            learning_rate=actor.optim.lr,
            steps=trainer.total_training_steps,
            every=trainer.save_freq,
        )
