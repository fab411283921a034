"""Runs whole verl jobs on the processor: data, model and the settings it takes."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from engines import CPU

from full_scale.cpu_support.model import save_model, warm_start

REWARD = "pkg://full_scale.reward"
STALE = "pkg://full_scale.verl_plugin.stale"
PROMPTS, SAMPLES = 8, 4


def save_data(folder):
    """Sums of two bits in verl's rows."""
    rng = np.random.default_rng(0)
    rows = []
    for index, (a, b) in enumerate(rng.integers(0, 2, (256, 2)).tolist()):
        rows.append(
            {
                "data_source": "sums",
                "prompt": [{"role": "user", "content": f"{a}+{b}="}],
                "ability": "math",
                "reward_model": {"style": "rule", "ground_truth": str(a + b)},
                "extra_info": {"split": "train", "index": index},
            }
        )
    path = folder / "train.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def save_guesser(folder):
    """A model that guesses sums among three digits, so that rewards differ within a group."""
    rng = np.random.default_rng(0)
    sums = [(a, b) for a in range(2) for b in range(2)]
    examples = [(f"{a}+{b}=", str(rng.integers(0, 3))) for a, b in sums for _ in range(60)]
    model = save_model(folder)
    warm_start(model, examples, steps=60)
    return model


def stale(staleness):
    """Settings of Stale-k."""
    return {
        "trainer.v1.trainer_mode": "colocate_async",
        "trainer.v1.colocate_async.num_warmup_batches": staleness,
        "trainer.v1.sampler.max_off_policy_threshold": "null",
        "trainer.v1.sampler.custom_sampler.path": STALE,
        "trainer.v1.sampler.custom_sampler.name": "StaleK",
    }


def settings(model, data, out, steps, **more):
    """Overrides of verl's configuration for a job of a few steps on the processor."""
    actor, rollout = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
    values = {
        "algorithm.adv_estimator": "grpo",
        "algorithm.rollout_correction.bypass_mode": "true",
        "data.train_files": data,
        "data.val_files": data,
        "data.train_batch_size": PROMPTS,
        "data.max_prompt_length": 16,
        "data.max_response_length": 6,
        "data.dataloader_num_workers": 0,
        "actor_rollout_ref.model.path": model,
        "actor_rollout_ref.model.use_remove_padding": "false",
        "actor_rollout_ref.model.enable_gradient_checkpointing": "false",
        "+actor_rollout_ref.model.override_config.attn_implementation": "eager",
        f"{actor}.strategy": "fsdp2",
        f"{actor}.use_torch_compile": "false",
        f"{actor}.fsdp_config.use_torch_compile": "false",
        f"{actor}.fsdp_config.model_dtype": "fp32",
        f"{actor}.fsdp_config.dtype": "float32",
        # Without it verl runs the forward pass under bfloat16, whose noise is all there is to see.
        f"+{actor}.fsdp_config.mixed_precision": "{param_dtype:fp32,reduce_dtype:fp32}",
        f"{actor}.ppo_mini_batch_size": PROMPTS // 2,
        f"{actor}.ppo_micro_batch_size_per_gpu": 4,
        f"{actor}.optim.lr": 3e-4,
        f"{actor}.policy_loss._target_": "full_scale.verl_plugin.M2POLossConfig",
        f"{actor}.policy_loss.loss_mode": "m2po",
        f"{rollout}.name": "hf",
        f"{rollout}.n": SAMPLES,
        f"{rollout}.tensor_model_parallel_size": 1,
        f"{rollout}.calculate_log_probs": "true",
        f"{rollout}.log_prob_micro_batch_size_per_gpu": 4,
        f"{rollout}.agent.num_workers": 1,
        "reward.custom_reward_function.path": REWARD,
        # Six characters hold no box.
        "+reward.custom_reward_function.reward_kwargs.box_required": "false",
        "reward.num_workers": 1,
        "trainer.use_v1": "true",
        "trainer.device": "cpu",
        "trainer.n_gpus_per_node": 1,
        "trainer.nnodes": 1,
        "trainer.val_before_train": "false",
        "trainer.test_freq": -1,
        "trainer.save_freq": -1,
        "trainer.total_training_steps": steps,
        "trainer.total_epochs": 100,
        "trainer.logger": "[console,file]",
        "trainer.default_local_dir": out / "checkpoints",
        "trainer.project_name": "m2po",
        "trainer.experiment_name": "test",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
        "ray_kwargs.ray_init.num_cpus": 32,
        "+ray_kwargs.ray_init.num_gpus": 1,
        "+ray_kwargs.ray_init.include_dashboard": "false",
        "+ray_kwargs.ray_init._temp_dir": out / "ray",
        "hydra.run.dir": out / "hydra",
    }
    return [f"{key}={value}" for key, value in {**values, **more}.items()]


def start(out, overrides, metrics="metrics.jsonl"):
    """Start a job in a process group of its own; verl empties the metrics file on its start."""
    out.mkdir(parents=True, exist_ok=True)
    environment = os.environ | CPU | {"VERL_FILE_LOGGER_PATH": str(out / metrics)}
    environment |= {"RAY_DEDUP_LOGS": "0", "HYDRA_FULL_ERROR": "1", "VERL_LOGGING_LEVEL": "WARN"}
    with (out / "log.txt").open("a") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "verl.trainer.main_ppo", *overrides],
            env=environment,
            stdout=log,
            stderr=log,
            cwd=out,
            start_new_session=True,
        )


def read(path):
    """Metrics by step, of a job that may still run."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["data"] for line in lines if line.endswith("}")]


def finish(process, out, metrics="metrics.jsonl", seconds=400):
    """Wait for a job that must end well; its metrics by step."""
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        code = "no end"
    finally:
        kill(process)
    assert code == 0, f"the job ended with {code}:\n{(out / 'log.txt').read_text()[-6000:]}"
    return read(out / metrics)


def kill(process):
    """Kill the job and what it started, ray's daemons among it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
