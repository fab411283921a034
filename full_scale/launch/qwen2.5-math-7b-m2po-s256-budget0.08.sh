#!/usr/bin/env bash
# Qwen2.5-Math-7B: M2PO, budget 0.08, data 256 updates old, 1 x 8 GPUs.
# M2PO: trust-region tokens are masked, largest first, until their M2 is in budget.
# Plan: 23 hours for 1000 steps, 18 to 34 if responses are half or twice as long as the assumed
# 640 tokens; a step samples for 38 s and trains for 32 s. Estimated, not measured: see m2po-lab
# plan qwen2.5-math-7b-m2po-s256-budget0.08.
# Expected: the paper gives no number for this run.
# Watch: no step comes before 64 batches were sampled; training/stale_k rises to 64 and stays
# there; actor/m2po/m2_after at most 0.08; masked_fraction small; critic/score/mean above .1 and
# rising.
# Written by `python -m full_scale.scripts` from full_scale/recipes.py.
set -euo pipefail

DATA=$(realpath -m "${DATA:-data}")
OUT=$(realpath -m "${OUT:-runs/qwen2.5-math-7b-m2po-s256-budget0.08}")
MODEL=${MODEL:-Qwen/Qwen2.5-Math-7B}
START=$(date -u +%Y%m%dT%H%M%SZ)
[ ! -e "$MODEL" ] || MODEL=$(realpath "$MODEL")

if [ "${PREFLIGHT:-yes}" != no ]; then
    m2po-lab preflight qwen2.5-math-7b-m2po-s256-budget0.08 --data "$DATA" --out "$OUT" --model "$MODEL" "$@"
fi
mkdir -p "$OUT/metrics"
exec python -m verl.trainer.main_ppo \
    "data.train_files='$DATA/train.parquet'" \
    "data.val_files='$DATA/test.parquet'" \
    data.train_batch_size=256 \
    data.max_prompt_length=1536 \
    data.max_response_length=2560 \
    data.filter_overlong_prompts=true \
    "actor_rollout_ref.model.path='$MODEL'" \
    actor_rollout_ref.model.external_lib=full_scale.verl_plugin \
    actor_rollout_ref.model.use_remove_padding=true \
    actor_rollout_ref.model.enable_gradient_checkpointing=true \
    actor_rollout_ref.actor.strategy=fsdp2 \
    actor_rollout_ref.actor.ppo_mini_batch_size=64 \
    actor_rollout_ref.actor.use_dynamic_bsz=true \
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=30000 \
    actor_rollout_ref.actor.fsdp_config.optimizer_offload=true \
    actor_rollout_ref.actor.optim.lr=1e-06 \
    actor_rollout_ref.actor.optim.weight_decay=0.01 \
    actor_rollout_ref.actor.use_kl_loss=false \
    actor_rollout_ref.actor.entropy_coeff=0 \
    algorithm.adv_estimator=grpo \
    critic.enable=false \
    algorithm.rollout_correction.bypass_mode=true \
    actor_rollout_ref.actor.loss_agg_mode=token-mean \
    actor_rollout_ref.actor.policy_loss._target_=full_scale.verl_plugin.M2POLossConfig \
    actor_rollout_ref.actor.policy_loss.loss_mode=m2po \
    +actor_rollout_ref.actor.policy_loss.budget=0.08 \
    +actor_rollout_ref.actor.policy_loss.staleness=64 \
    "+actor_rollout_ref.actor.policy_loss.log_dir='$OUT/tokens'" \
    +actor_rollout_ref.actor.policy_loss.log_every=10 \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.n=8 \
    actor_rollout_ref.rollout.temperature=1.0 \
    actor_rollout_ref.rollout.calculate_log_probs=true \
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
    actor_rollout_ref.rollout.val_kwargs.n=4 \
    actor_rollout_ref.rollout.val_kwargs.top_p=0.7 \
    actor_rollout_ref.rollout.val_kwargs.temperature=1.0 \
    actor_rollout_ref.rollout.val_kwargs.do_sample=true \
    reward.custom_reward_function.path=pkg://full_scale.reward \
    trainer.v1.trainer_mode=colocate_async \
    trainer.v1.colocate_async.num_warmup_batches=64 \
    trainer.v1.sampler.max_off_policy_threshold=null \
    trainer.v1.sampler.custom_sampler.path=pkg://full_scale.verl_plugin.stale \
    trainer.v1.sampler.custom_sampler.name=StaleK \
    transfer_queue.backend.SimpleStorage.total_storage_size=null \
    trainer.checkpoint_callback_class=full_scale.verl_plugin.checkpoints.DropDeadQueues \
    trainer.nnodes=1 \
    trainer.n_gpus_per_node=8 \
    trainer.total_training_steps=1000 \
    trainer.total_epochs=100 \
    trainer.test_freq=50 \
    trainer.save_freq=50 \
    trainer.max_actor_ckpt_to_keep=2 \
    "trainer.default_local_dir='$OUT/checkpoints'" \
    "trainer.validation_data_dir='$OUT/validation'" \
    "trainer.logger=[console,file]" \
    trainer.project_name=m2po \
    trainer.experiment_name=qwen2.5-math-7b-m2po-s256-budget0.08 \
    "+ray_kwargs.ray_init.runtime_env.env_vars.VERL_FILE_LOGGER_PATH='$OUT/metrics/$START.jsonl'" \
    "hydra.run.dir='$OUT/hydra/$START'" \
    "$@"
