"""A recipe as settings of verl 0.9.1: the one place that names the keys of a run."""

import re
from dataclasses import dataclass

from full_scale.recipes import Recipe

Value = str | int | float | bool | None | tuple[str, ...]

PLUGIN = "full_scale.verl_plugin"
ACTOR = "actor_rollout_ref.actor"
ROLLOUT = "actor_rollout_ref.rollout"
LOSS = f"{ACTOR}.policy_loss"
STORAGE = "transfer_queue.backend.SimpleStorage"

TRAINING = "train.parquet"
EVALUATION = "test.parquet"

LOGGED_STEPS = 10
"""The token log holds every so many steps: enough for curves, a tenth of the disk."""
KEPT_CHECKPOINTS = 2
"""So many can be resumed from; scores and answers of all evaluations stay."""
PLAIN = re.compile(r"[\w./:-]+", re.ASCII)
"""Values that hydra reads as one string without quotes."""


@dataclass(frozen=True)
class Place:
    """Where a run reads and writes; shell variables in a script, paths in a command.

    Attributes:
        data: folder that `m2po-lab data prepare` filled.
        out: folder of the run.
        model: hub id or folder of the model.
        start: name of this start among those of the run; its metrics get a file of their own,
            because verl empties the file it is given.
    """

    data: str
    out: str
    model: str
    start: str

    @property
    def metrics(self) -> str:
        """File of this start's metrics, one JSON line a step."""
        return f"{self.out}/metrics/{self.start}.jsonl"


def overrides(recipe: Recipe, place: Place) -> list[str]:
    """Settings as `key=value` for verl's command, in the order in which they are read best."""
    return [f"{key}={hydra_value(value)}" for key, value in settings(recipe, place).items()]


def settings(recipe: Recipe, place: Place) -> dict[str, Value]:
    """Settings by key; a key with + in front is one of the plugin, which verl does not know."""
    return {
        **_data(recipe, place),
        **_model(place),
        **_update(recipe),
        **_loss(recipe, place),
        **_rollout(recipe),
        **_age(recipe),
        **_trainer(recipe, place),
    }


def hydra_value(value: Value) -> str:
    """Write a value in hydra's grammar."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{','.join(map(hydra_value, value))}]"
    if isinstance(value, str) and not PLAIN.fullmatch(value):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return str(value)


def _data(recipe: Recipe, place: Place) -> dict[str, Value]:
    return {
        "data.train_files": f"{place.data}/{TRAINING}",
        "data.val_files": f"{place.data}/{EVALUATION}",
        "data.train_batch_size": recipe.train_batch_size,
        "data.max_prompt_length": recipe.max_prompt_length,
        "data.max_response_length": recipe.max_response_length,
        "data.filter_overlong_prompts": True,
    }


def _model(place: Place) -> dict[str, Value]:
    return {
        "actor_rollout_ref.model.path": place.model,
        # Imports the plugin in every worker, on every node, without an environment variable.
        "actor_rollout_ref.model.external_lib": PLUGIN,
        "actor_rollout_ref.model.use_remove_padding": True,
        "actor_rollout_ref.model.enable_gradient_checkpointing": True,
    }


def _update(recipe: Recipe) -> dict[str, Value]:
    return {
        f"{ACTOR}.strategy": "fsdp2",
        f"{ACTOR}.ppo_mini_batch_size": recipe.mini_batch_size,
        f"{ACTOR}.use_dynamic_bsz": True,
        f"{ACTOR}.ppo_max_token_len_per_gpu": recipe.tokens_per_gpu,
        f"{ACTOR}.fsdp_config.optimizer_offload": recipe.offload,
        f"{ACTOR}.optim.lr": recipe.learning_rate,
        f"{ACTOR}.optim.weight_decay": 0.01,
        f"{ACTOR}.use_kl_loss": False,
        f"{ACTOR}.entropy_coeff": 0,
    }


def _loss(recipe: Recipe, place: Place) -> dict[str, Value]:
    method = recipe.trust_region
    budget = {} if recipe.budget is None else {f"+{LOSS}.budget": recipe.budget}
    return {
        "algorithm.adv_estimator": "grpo",
        "critic.enable": False,
        "algorithm.rollout_correction.bypass_mode": method.bypass,
        f"{ACTOR}.loss_agg_mode": method.loss_agg_mode,
        f"{LOSS}._target_": f"{PLUGIN}.M2POLossConfig",
        f"{LOSS}.loss_mode": method.loss_mode,
        **budget,
        **{f"+{LOSS}.objective.{name}": value for name, value in method.objective.items()},
        f"+{LOSS}.staleness": recipe.staleness_steps,
        f"+{LOSS}.log_dir": f"{place.out}/tokens",
        f"+{LOSS}.log_every": LOGGED_STEPS,
    }


def _rollout(recipe: Recipe) -> dict[str, Value]:
    return {
        f"{ROLLOUT}.name": "vllm",
        f"{ROLLOUT}.n": recipe.samples,
        f"{ROLLOUT}.temperature": 1.0,
        f"{ROLLOUT}.calculate_log_probs": True,
        f"{ROLLOUT}.tensor_model_parallel_size": recipe.tensor_parallel,
        f"{ROLLOUT}.gpu_memory_utilization": recipe.gpu_memory_utilization,
        f"{ROLLOUT}.val_kwargs.n": 4,
        f"{ROLLOUT}.val_kwargs.top_p": 0.7,
        f"{ROLLOUT}.val_kwargs.temperature": 1.0,
        f"{ROLLOUT}.val_kwargs.do_sample": True,
        "reward.custom_reward_function.path": "pkg://full_scale.reward",
    }


def _age(recipe: Recipe) -> dict[str, Value]:
    """How old a batch is; see `full_scale.verl_plugin.stale`."""
    if not recipe.staleness:
        return {"trainer.v1.trainer_mode": "sync"}
    return {
        "trainer.v1.trainer_mode": "colocate_async",
        "trainer.v1.colocate_async.num_warmup_batches": recipe.staleness_steps,
        "trainer.v1.sampler.max_off_policy_threshold": None,
        "trainer.v1.sampler.custom_sampler.path": f"pkg://{PLUGIN}.stale",
        "trainer.v1.sampler.custom_sampler.name": "StaleK",
        # verl's own 100000 rows are fewer than 65 batches of 2048 responses.
        f"{STORAGE}.total_storage_size": None,
        "trainer.checkpoint_callback_class": f"{PLUGIN}.checkpoints.DropDeadQueues",
    }


def _trainer(recipe: Recipe, place: Place) -> dict[str, Value]:
    environment = "+ray_kwargs.ray_init.runtime_env.env_vars"
    return {
        "trainer.nnodes": recipe.nodes,
        "trainer.n_gpus_per_node": recipe.gpus_per_node,
        "trainer.total_training_steps": recipe.steps,
        "trainer.total_epochs": 100,
        "trainer.test_freq": recipe.every,
        "trainer.save_freq": recipe.every,
        "trainer.max_actor_ckpt_to_keep": KEPT_CHECKPOINTS,
        "trainer.default_local_dir": f"{place.out}/checkpoints",
        "trainer.validation_data_dir": f"{place.out}/validation",
        "trainer.logger": ("console", "file"),
        "trainer.project_name": "m2po",
        "trainer.experiment_name": recipe.name,
        # The worker that writes metrics may be on another node, so ray is to carry the path there.
        f"{environment}.VERL_FILE_LOGGER_PATH": place.metrics,
        "hydra.run.dir": f"{place.out}/hydra/{place.start}",
    }
