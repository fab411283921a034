"""One rank of an engine test: train under many settings, save what came out.

Run by `engines.py` in a process of its own; verl resolves its platform once a process.
"""

import json
import os
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import torch.distributed as dist
import verl  # noqa: F401 - loads the modules named in VERL_USE_EXTERNAL_MODULES
from tensordict import NonTensorStack, TensorDict
from torch.distributed.device_mesh import init_device_mesh
from verl.trainer.config import CheckpointConfig
from verl.utils import tensordict_utils as tu
from verl.workers.config import (
    FSDPActorConfig,
    FSDPEngineConfig,
    FSDPOptimizerConfig,
    HFModelConfig,
)
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngine
from verl.workers.utils.losses import ppo_loss
from verl.workers.utils.padding import no_padding_2_padding

from full_scale.verl_plugin import M2POLossConfig
from full_scale.verl_plugin.engine import M2POFSDPEngine
from full_scale.verl_plugin.ranks import Ranks
from m2po_lab.core import TokenBatch, solve_threshold

ROWS, MINI_BATCHES, LONGEST = 16, 3, 20
RECORDED = ("keep", "d", "advantage", "valid", "behavior")


class Recording(M2POFSDPEngine):
    """The engine, with the masks that its losses used laid out by row."""

    def _m2po_finish(self, outputs, mini, tape, threshold, ranks):
        super()._m2po_finish(outputs, mini, tape, threshold, ranks)
        laid = {name: [] for name in RECORDED}
        for each in tape.judged:
            laid["keep"].append((each.rows, each.keep))
            laid["d"].append((each.rows, each.batch.log_ratio()))
            laid["advantage"].append((each.rows, each.batch.advantage))
            laid["valid"].append((each.rows, each.batch.keep))
            laid["behavior"].append((each.rows, each.batch.behavior_logp))
        for name, parts in laid.items():
            self.tokens[name].append(by_row(parts))
        self.numbers.append(
            {k: v.aggregate() for k, v in outputs["metrics"].items() if k.startswith("m2po/")}
        )

    def _m2po_current(self, mini, **columns):
        self.passes += 1
        return super()._m2po_current(mini, **columns)


def by_row(parts):
    """(ROWS, LONGEST) values of all ranks from (row numbers, values) of micro-batches."""
    whole = torch.zeros(ROWS, LONGEST, dtype=torch.float64)
    for rows, values in parts:
        whole[rows, : values.shape[1]] = values.double()
    dist.all_reduce(whole)
    return whole.numpy()


def nested(rows):
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


def mini_batch(index, vocabulary):
    """Rows with lengths of their own, random tokens, and noise for the behavior log-probs."""
    rng = np.random.default_rng(index)
    prompts = [
        torch.from_numpy(rng.integers(3, vocabulary, rng.integers(2, 6))) for _ in range(ROWS)
    ]
    answers = [
        torch.from_numpy(rng.integers(3, vocabulary, n)) for n in rng.integers(3, LONGEST + 1, ROWS)
    ]
    noise = [torch.from_numpy(rng.standard_t(4, len(a)) * 0.3).float() for a in answers]
    signal = rng.normal(size=ROWS)
    return prompts, answers, noise, signal


def to_data(prompts, answers, noise, signal, settings):
    ids = [torch.cat(pair) for pair in zip(prompts, answers, strict=True)]
    ones = [torch.ones(len(a), dtype=torch.int64) for a in answers]
    # A masked token in the middle, as a tool's output would be.
    for row in ones:
        row[len(row) // 2] = 0
    data = TensorDict(
        {
            "input_ids": nested(ids),
            "position_ids": nested([torch.arange(len(i)) for i in ids]),
            "prompts": nested(prompts),
            "responses": nested(answers),
            "response_mask": nested(ones),
            "loss_mask": nested(ones),
            "rollout_log_probs": nested(noise),
            "old_log_probs": nested(noise),
            "advantages": nested(
                [torch.full((len(a),), float(s)) for a, s in zip(answers, signal, strict=True)]
            ),
        },
        batch_size=len(ids),
    )
    tu.assign_non_tensor(
        data,
        temperature=1.0,
        use_remove_padding=False,
        use_fused_kernels=False,
        global_batch_size=ROWS,
        use_dynamic_bsz=settings["micro"] == "dynamic",
        max_token_len_per_gpu=60,
        micro_batch_size_per_gpu=1 if settings["micro"] == "dynamic" else settings["micro"],
    )
    return data


def share(parts):
    """Rows of this rank, contiguous, as verl hands them out."""
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = slice(rank * ROWS // world, (rank + 1) * ROWS // world)
    return [part[mine] for part in parts]


def with_behavior(engine, data, settings):
    """Behavior log-probs: those of the untrained model plus noise; old ones by the settings."""
    noise = data["rollout_log_probs"]
    output = engine.infer_batch(data, loss_function=None)
    base = no_padding_2_padding(output["model_output"]["log_probs"], data)
    lengths = noise.offsets().diff().tolist()
    rows = [base[i, :n] for i, n in enumerate(lengths)]
    behavior = nested([row + extra for row, extra in zip(rows, noise.unbind(), strict=True)])
    data["rollout_log_probs"] = behavior
    data["old_log_probs"] = nested(rows) if settings.get("decoupled") else behavior
    for name in settings.get("without", ()):
        del data[name]
    if settings.get("sampled_at") is not None:
        tag = {"min_global_steps": settings["sampled_at"], "max_global_steps": 4}
        data["extra_fields"] = NonTensorStack(*[tag] * len(data))
    if settings.get("weights"):
        data["rollout_is_weights"] = behavior
    return data


def train(model, settings):
    """Train on a few mini-batches; masks, metrics and weights that came out."""
    names = (
        "staleness",
        "loss_mode",
        "scope",
        "budget",
        "reuse_old_log_probs",
        "log_dir",
        "objective",
    )
    policy = M2POLossConfig(**{name: settings[name] for name in names if name in settings})
    actor = FSDPActorConfig(
        strategy="fsdp2",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        policy_loss=policy,
        use_torch_compile=False,
        loss_agg_mode=settings.get("aggregation", "token-mean"),
    )
    engine = Recording(
        model_config=model,
        engine_config=FSDPEngineConfig(
            strategy="fsdp2",
            use_torch_compile=False,
            mixed_precision={"param_dtype": "fp32", "reduce_dtype": "fp32"},
            use_remove_padding=False,
        ),
        optimizer_config=FSDPOptimizerConfig(lr=1e-3, clip_grad=1.0, total_training_steps=10),
        checkpoint_config=CheckpointConfig(),
    )
    engine.initialize()
    # As after four steps: verl counts them in the schedule of the learning rate.
    engine.lr_scheduler.last_epoch = 4
    engine.numbers, engine.passes = [], 0
    engine.tokens = {name: [] for name in RECORDED}
    loss = partial(ppo_loss, config=actor)
    with engine.eval_mode():
        batches = [
            with_behavior(
                engine,
                to_data(*share(mini_batch(i, model.hf_config.vocab_size)), settings),
                settings,
            )
            for i in range(MINI_BATCHES)
        ]
    gradient_norms = []
    for i, data in enumerate(batches):
        tu.assign_non_tensor(data, update_lr_scheduler=i == MINI_BATCHES - 1)
        with engine.train_mode():
            outputs = engine.train_batch(data, loss)
        gradient_norms.append(float(outputs["metrics"]["grad_norm"]))
    weights = {name: value.clone() for name, value in engine.get_per_tensor_param()[0]}
    return engine, gradient_norms, weights


def groups(result):
    """Two data-parallel ranks with two sequence-parallel replicas each: tokens seen by the solver.

    Ulysses needs a kernel that no processor has, so this goes through verl's mesh and the plugin's
    sums, without a model.
    """
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "sp"))
    engine = SimpleNamespace(ulysses_device_mesh=mesh, ulysses_sequence_parallel_size=2)
    ranks = Ranks(FSDPEngine.get_data_parallel_group(engine), torch.device("cpu"))
    generator = torch.Generator().manual_seed(mesh["dp"].get_local_rank())
    batch = TokenBatch(
        behavior_logp=torch.zeros(4, 5),
        current_logp=torch.randn(4, 5, generator=generator),
        advantage=torch.ones(4),
    )
    start = int(ranks.table([4])[: ranks.index].sum())
    solved = solve_threshold(batch, 0.04, reduce=ranks.sum, rows=torch.arange(start, start + 4))
    if dist.get_rank() == 0:
        np.savez(result, active=solved.active, masked=solved.masked, value=solved.value)


def main():
    model_path, settings_path, out = sys.argv[1:]
    dist.init_process_group("gloo")
    assert EngineRegistry.get_engine_cls("language_model", "fsdp2") is M2POFSDPEngine
    model = HFModelConfig(
        path=model_path,
        use_remove_padding=False,
        enable_gradient_checkpointing=False,
        override_config={"attn_implementation": "eager"},
    )
    for settings in json.loads(Path(settings_path).read_text()):
        result = Path(out) / settings["name"]
        if settings.get("groups"):
            groups(result)
            continue
        try:
            engine, norms, weights = train(model, settings)
        except (ValueError, RuntimeError, TypeError) as error:
            if dist.get_rank() == 0:
                np.savez(result, error=f"{type(error).__name__}: {error}")
            continue
        if dist.get_rank() == 0:
            np.savez(
                result,
                **{name: np.stack(values) for name, values in engine.tokens.items()},
                passes=engine.passes,
                numbers=json.dumps(engine.numbers),
                gradient_norms=norms,
                **{f"weight:{name}": value.float().numpy() for name, value in weights.items()},
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    assert os.environ["VERL_PLATFORM"] == "cpu"
    main()
