"""Shape of the model that is there, which need not be the recipe's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from full_scale.models import Model
from full_scale.preflight.job import Job
from full_scale.recipes import Recipe


def configuration_of(job: Job) -> Any:
    """Configuration of the model as transformers reads it.

    Raises:
        OSError: it is not there.
    """
    from transformers import AutoConfig
    from verl.utils.fs import copy_to_local

    part = job.at("actor_rollout_ref.model")
    return AutoConfig.from_pretrained(
        copy_to_local(part.hf_config_path or part.path),
        trust_remote_code=bool(part.trust_remote_code),
    )


def shape_of(path: str, config: Any) -> Model:
    """Shape of a decoder from its configuration; biases and norms by the kinds that recipes use."""
    heads = config.num_attention_heads
    return Model(
        hub_id=path,
        label=Path(path).name,
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        intermediate=config.intermediate_size,
        heads=heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_size=getattr(config, "head_dim", None) or config.hidden_size // heads,
        vocabulary=config.vocab_size,
        positions=config.max_position_embeddings,
        tied=bool(config.tie_word_embeddings),
        qkv_bias=config.model_type == "qwen2",
        qk_norm=config.model_type == "qwen3",
    )


def planned(job: Job) -> Recipe:
    """The recipe with what was changed of it, and the model that is there if it can be read."""
    try:
        config = configuration_of(job)
        shape = shape_of(job.at("actor_rollout_ref.model.path"), config)
    except (OSError, ValueError, AttributeError):
        return job.effective
    return replace(job.effective, other_shape=shape)
