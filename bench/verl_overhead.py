"""What M2PO costs inside verl: each scope against the plain update, and the selection over ranks.

Runs on the processor, in the environment of the plugin:

    .venv-verl/bin/python bench/verl_overhead.py [--seconds-a-case 10] [--tokens 1000000]
"""

import argparse
import contextlib
import importlib.util
import io
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
ENVIRONMENT = {
    "VERL_PLATFORM": "cpu",
    "VERL_USE_EXTERNAL_MODULES": "full_scale.cpu_support.register,full_scale.verl_plugin",
    "VERL_LOGGING_LEVEL": "ERROR",
    "PYTHONWARNINGS": "ignore",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(HERE.parent.parent),
}
PLAIN = "without M2PO (verl's vanilla)"
CASES = {
    PLAIN: {"loss_mode": "vanilla"},
    "exact": {"scope": "exact"},
    "exact, token log": {"scope": "exact", "log": True},
    "lagged": {"scope": "lagged"},
    "proximal": {"scope": "proximal", "decoupled": True},
    "objective without a selection (lab_ppo)": {"loss_mode": "lab_ppo"},
}
ROWS, PROMPT, ANSWER = 16, 16, 112


def main() -> None:
    """Run both parts, or one of them as a rank of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds-a-case", type=float, default=10)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--rank-of", choices=("updates", "selection"))
    arguments = parser.parse_args()
    if importlib.util.find_spec("verl") is None:
        print("needs verl: make test-full-scale sets up .venv-verl; run this with its python")
        return
    if arguments.rank_of == "updates":
        updates(arguments.seconds_a_case)
    elif arguments.rank_of == "selection":
        selection(arguments.tokens)
    else:
        print(f"update on {ROWS} rows of {PROMPT + ANSWER} tokens, one rank, one thread")
        ranks(1, "--rank-of", "updates", "--seconds-a-case", str(arguments.seconds_a_case))
        for world in (2, 4):
            print(f"selection, {world} ranks with {arguments.tokens:,} tokens each")
            ranks(world, "--rank-of", "selection", "--tokens", str(arguments.tokens))


def ranks(world: int, *arguments: str) -> None:
    """Run this file once a rank; only rank 0 prints."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(world)}
    processes = [
        subprocess.Popen(
            [sys.executable, str(HERE), *arguments],
            env=os.environ | ENVIRONMENT | place | {"RANK": str(rank)},
            stderr=subprocess.DEVNULL,
        )
        for rank in range(world)
    ]
    if any(process.wait() for process in processes):
        raise SystemExit("a rank failed; run it alone to see why")


def updates(seconds: float) -> None:
    """Time whole updates under each scope, in turns, so that a busy machine slows all alike."""
    import torch.distributed as dist
    import verl  # noqa: F401 - loads the plugin
    from verl.workers.config import HFModelConfig

    from full_scale.cpu_support.model import save_model

    dist.init_process_group("gloo")
    with tempfile.TemporaryDirectory() as folder:
        path = save_model(Path(folder) / "model", width=128, layers=4)
        model = HFModelConfig(
            path=str(path),
            use_remove_padding=False,
            enable_gradient_checkpointing=False,
            override_config={"attn_implementation": "eager"},
        )
        with contextlib.redirect_stdout(io.StringIO()):
            runs = {name: update_of(model, case, Path(folder)) for name, case in CASES.items()}
        times: dict[str, list[float]] = {name: [] for name in runs}
        for run in runs.values():
            run()
        ends = time.perf_counter() + seconds * len(runs)
        while time.perf_counter() < ends:
            for name, run in runs.items():
                began = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - began)
    plain = statistics.median(times[PLAIN])
    for name, taken in times.items():
        middle = statistics.median(taken)
        extra = 100 * statistics.median(np.array(taken) / np.array(times[PLAIN]) - 1)
        print(f"  {name:42s} {1e3 * middle:8.1f} ms  {extra:+6.1f} %  ({len(taken)} updates)")
    print(f"  all relative to {1e3 * plain:.1f} ms, medians of the pairs of a turn")


def update_of(model, case, folder):
    """Return a function that runs one update of an engine of its own."""
    from functools import partial

    from verl.trainer.config import CheckpointConfig
    from verl.workers.config import FSDPActorConfig, FSDPEngineConfig, FSDPOptimizerConfig
    from verl.workers.engine import EngineRegistry
    from verl.workers.utils.losses import ppo_loss

    from full_scale.verl_plugin import M2POLossConfig

    policy = {name: case[name] for name in ("loss_mode", "scope") if name in case}
    if case.get("log"):
        policy["log_dir"] = str(folder / "log")
    actor = FSDPActorConfig(
        strategy="fsdp2",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=4,
        policy_loss=M2POLossConfig(**policy),
        use_torch_compile=False,
    )
    engine = EngineRegistry.get_engine_cls("language_model", "fsdp2")(
        model_config=model,
        engine_config=FSDPEngineConfig(
            strategy="fsdp2",
            use_torch_compile=False,
            use_remove_padding=False,
            mixed_precision={"param_dtype": "fp32", "reduce_dtype": "fp32"},
        ),
        optimizer_config=FSDPOptimizerConfig(lr=1e-6, total_training_steps=1000),
        checkpoint_config=CheckpointConfig(),
    )
    engine.initialize()
    data = mini_batch(model.hf_config.vocab_size, decoupled=case.get("decoupled", False))
    loss = partial(ppo_loss, config=actor)

    def run():
        with engine.train_mode():
            engine.train_batch(data.copy(), loss)

    return run


def mini_batch(vocabulary, *, decoupled):
    """Random tokens with the fields that verl's trainer sends."""
    import torch
    from tensordict import TensorDict
    from verl.utils import tensordict_utils as tu

    rng = np.random.default_rng(0)

    def nested(array):
        return torch.nested.as_nested_tensor(list(torch.from_numpy(array)), layout=torch.jagged)

    ids = rng.integers(3, vocabulary, (ROWS, PROMPT + ANSWER))
    behavior = rng.normal(-4.6, 0.3, (ROWS, ANSWER)).astype(np.float32)
    old = behavior + rng.normal(0, 0.3, behavior.shape).astype(np.float32)
    ones = np.ones((ROWS, ANSWER), np.int64)
    advantage = np.repeat(rng.normal(size=(ROWS, 1)), ANSWER, axis=1).astype(np.float32)
    columns = {
        "input_ids": ids,
        "position_ids": np.tile(np.arange(PROMPT + ANSWER), (ROWS, 1)),
        "prompts": ids[:, :PROMPT],
        "responses": ids[:, PROMPT:],
        "response_mask": ones,
        "loss_mask": ones,
        "rollout_log_probs": behavior,
        "old_log_probs": old if decoupled else behavior,
        "advantages": advantage,
    }
    data = TensorDict({name: nested(column) for name, column in columns.items()}, batch_size=ROWS)
    return tu.assign_non_tensor(
        data,
        temperature=1.0,
        use_remove_padding=False,
        use_fused_kernels=False,
        use_dynamic_bsz=False,
        micro_batch_size_per_gpu=4,
        global_batch_size=ROWS,
        update_lr_scheduler=True,
    )


def selection(tokens: int, repeats: int = 5) -> None:
    """Time the solver's sums over ranks against gathering and sorting; both must agree."""
    import torch
    import torch.distributed as dist

    from m2po_lab.core import TokenBatch, solve_threshold

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    generator = torch.Generator().manual_seed(rank)
    width = 1000
    batch = TokenBatch(
        behavior_logp=torch.zeros(tokens // width, width),
        current_logp=0.3 * torch.randn(tokens // width, width, generator=generator),
        advantage=torch.randn(tokens // width, generator=generator),
    )
    rows = torch.arange(rank * batch.n_rows, (rank + 1) * batch.n_rows)
    sent = []

    def reduce(table):
        sent.append(table.numel() * table.element_size())
        dist.all_reduce(table)
        return table

    def solved():
        sent.clear()
        return solve_threshold(batch, 0.04, reduce=reduce, rows=rows).masked

    def gathered():
        d, a = batch.log_ratio(), batch.advantage
        squares = torch.where(((a > 0) & (d > 0)) | ((a < 0) & (d < 0)), d * d, torch.nan)
        parts = [torch.empty_like(squares) for _ in range(world)]
        dist.all_gather(parts, squares)
        whole = torch.cat(parts).reshape(-1)
        ordered = whole[~whole.isnan()].sort().values
        means = ordered.cumsum(0) / torch.arange(1, len(ordered) + 1)
        return len(ordered) - int((means <= 0.04).sum())

    answers, times = {}, {"solve_threshold": [], "gather and sort": []}
    for _ in range(repeats):
        for name, way in (("solve_threshold", solved), ("gather and sort", gathered)):
            dist.barrier()
            began = time.perf_counter()
            answers[name] = way()
            times[name].append(time.perf_counter() - began)
    if rank == 0:
        assert len(set(answers.values())) == 1, answers
        moved = {"solve_threshold": sum(sent), "gather and sort": 8 * tokens * (world - 1)}
        for name, taken in times.items():
            print(
                f"  {name:16s} {1e3 * statistics.median(taken):8.1f} ms, "
                f"{moved[name] / 1e6:8.2f} MB a rank; {answers[name]:,} tokens masked"
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
