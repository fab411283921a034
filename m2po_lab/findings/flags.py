"""How to make a framework log the log-probs that a dump lacks."""

from collections.abc import Mapping

FLAGS: Mapping[str, str] = {
    "verl": "verl: actor_rollout_ref.rollout.calculate_log_probs=True, and save the DataProto "
    "after old_log_prob (save_to_disk) or the TransferQueue cache; trainer.rollout_data_dir "
    "writes text only",
    "areal": "AReaL: rollout.dump_to_file writes text only; log `logprobs`, `prox_logp` and "
    "`versions` of the training batch",
    "slime": "slime: --save-debug-train-data (train_data holds log_probs and rollout_log_probs), "
    "with --use-rollout-logprobs or --get-mismatch-metrics",
    "miles": "miles: --dump-details (train_data holds log_probs and rollout_log_probs)",
    "trl": "TRL: log_completions writes text only; log sampling_per_token_logps and "
    "old_per_token_logps (use_vllm with vllm_importance_sampling_correction)",
    "prime-rl": "prime-rl: enable_token_export in the trainer config",
    "openrlhf": "OpenRLHF: log Experience.rollout_log_probs (needs is_correction_enable)",
    "nemo-rl": "NeMo-RL: train_data_step*.jsonl holds generation_logprobs and prev_logprobs unless "
    "env.should_log_nemo_gym_responses is set",
    "skyrl": "SkyRL: trainer.dump_data_batch=true, with generator.sampling_params.logprobs=0",
    "roll": "ROLL: rollout_dump holds text only; log infer_logprobs and old_log_probs of the batch",
    "trinity": "Trinity-RFT: `logprobs` of the experience buffer, and the trainer's beside it",
    "ms-swift": "ms-swift: log_completions writes text only; log rollout_logprobs and "
    "old_per_token_logps",
    "open-instruct": "open-instruct: save rollouts with logprobs, and the trainer's beside them",
    "atropos": "Atropos: inference_logprobs in the group, and the trainer's beside them",
}
"""Framework, as formats are named -> the flag or column that would give the log-probs."""

GENERAL = (
    "write rollout_log_probs (sampler) and old_log_probs or log_probs (trainer) for every token"
)


def flag_for(format_name: str) -> str:
    """Return the advice for a format; the general one for formats that are no framework's."""
    name = format_name.lower().replace("_", "-")
    known = [text for framework, text in FLAGS.items() if name.startswith(framework)]
    return known[0] if known else GENERAL
