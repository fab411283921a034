"""Runs whole verl jobs on the processor: data, model and the settings it takes."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
from engines import CPU

from full_scale.cpu_support.model import save_model, warm_start

REWARD = "pkg://full_scale.reward"
STALE = "pkg://full_scale.verl_plugin.stale"
PROMPTS, SAMPLES = 8, 4
ASK = r"{question} in \boxed{}"
SUMS = [(a, b) for a in range(4) for b in range(4)]
TESTED = {"aime24": SUMS[:2], "amc23": SUMS[2:6]}


def save_data(folder):
    """Sums of two digits, published as the sets are and prepared by the command.

    The training set also holds the sums that are tested, so that preparing has something to do.
    """
    published = folder / "published"
    published.mkdir()
    rows = [{"problem": f"{a}+{b}=", "answer": f"{a + b}"} for a, b in SUMS * 2]
    (published / "deepscaler.json").write_text(json.dumps(rows))
    for name, sums in TESTED.items():
        lines = [{"question": f"{a}+{b}=", "answer": float(a + b)} for a, b in sums]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (published / f"{name}.jsonl").write_text(text)
    sets = ["--sets", ",".join(TESTED), "--source", published, "--instruction", ASK]
    command("data", "prepare", "--out", folder / "data", *sets)
    return folder / "data"


def command(*arguments):
    """Run `m2po-lab` in a process of its own; what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "m2po_lab", *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def save_guesser(folder):
    """A model that puts one of four digits into a box, so that rewards differ within a group."""
    rng = np.random.default_rng(0)
    asked = [ASK.replace("{question}", f"{a}+{b}=") for a, b in SUMS]
    examples = [(text, rf"\boxed{{{rng.integers(0, 4)}}}") for text in asked for _ in range(40)]
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
        "data.train_files": f"{data}/train.parquet",
        "data.val_files": f"{data}/test.parquet",
        "data.train_batch_size": PROMPTS,
        "data.max_prompt_length": 16,
        "data.max_response_length": 12,
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
    # On a busy machine ray gives up on its own start, and its workers, nice by default, starve.
    environment |= {"RAY_raylet_start_wait_time_s": "300", "RAY_worker_niceness": "0"}
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
