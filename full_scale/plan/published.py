"""Published times beside what the plan says of the same run.

Two kinds. `absolute`: model, GPUs, batch and mean length are published and the speeds assumed.
`overlap`: times of the same run in another schedule replace the assumed speeds, so that only the
simulation is checked: does it find the step of the overlapping schedule? No default of
`Assumptions` was fitted to any of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import fmean

from full_scale.models import Model
from full_scale.plan.assumptions import Assumptions
from full_scale.plan.cost import Training
from full_scale.plan.schedule import asynchronous, one_step_off, synchronous
from full_scale.plan.workload import Workload, workload
from full_scale.recipes import RECIPES, Recipe

NEMO = "NeMo RL 0.4, performance summary: DGX H100, bfloat16"
VERL = "verl documentation: Qwen2.5-Math-7B, H20, FSDP2, vLLM"
PAPER = "arXiv 2510.01161"
WARM_UP, STEPS = 2, 5
"""Simulated steps that are left out, and those that are averaged."""

LLAMA_8B = Model(
    hub_id="meta-llama/Llama-3.1-8B-Instruct",
    label="Llama-3.1-8B",
    layers=32,
    hidden=4096,
    intermediate=14336,
    heads=32,
    kv_heads=8,
    head_size=128,
    vocabulary=128256,
    positions=131072,
    tied=False,
)
QWEN3_32B = Model(
    hub_id="Qwen/Qwen3-32B",
    label="Qwen3-32B",
    layers=64,
    hidden=5120,
    intermediate=25600,
    heads=64,
    kv_heads=8,
    head_size=128,
    vocabulary=151936,
    positions=40960,
    tied=False,
    qk_norm=True,
)
H20 = Assumptions(gpu_gb=102.0, peak_tflops=148.0, bandwidth_tb=4.0, sequences=1024)


@dataclass(frozen=True)
class Comparison:
    """A published time and the plan's.

    Attributes:
        source: where it is published.
        run: which one.
        kind: absolute or overlap.
        published: seconds a step.
        planned: seconds a step.
    """

    source: str
    run: str
    kind: str
    published: float
    planned: float

    @property
    def error(self) -> float:
        """Planned over published, less one."""
        return self.planned / self.published - 1


def comparisons() -> Iterator[Comparison]:
    """All of them, in the order of the documentation's table."""
    yield from _paper()
    yield from _nemo()
    yield from _verl()


def _mean(steps: list[float]) -> float:
    return fmean(steps[WARM_UP:])


def _paper() -> Iterator[Comparison]:
    for name in ("qwen2.5-math-7b-grpo-s0", "qwen2.5-math-7b-m2po-s256"):
        recipe = RECIPES[name]
        line = synchronous(workload(recipe, Assumptions()), recipe.gpus, WARM_UP + STEPS)
        yield Comparison(PAPER, name, "absolute", 34.5, _mean(line.steps))


def _nemo() -> Iterator[Comparison]:
    for other, width, gpus, mean, limit, one, twice, off in (
        (LLAMA_8B, 1, 16, 1060, 4096, 97.7, 16, 74.6),
        (QWEN3_32B, 4, 32, 3206, 4096, 393.0, 64, 215.0),
    ):
        run = Recipe(
            name=other.label,
            model=other.label,
            method="grpo",
            staleness=0,
            nodes=gpus // 8,
            tensor_parallel=width,
            train_batch_size=64,
            samples=32,
            mini_batch_size=16,
            max_response_length=limit,
            offload=False,
            other_shape=other,
        )
        assumed = Assumptions(response_mean=mean - Assumptions.prompt_mean)
        # Log-probs of the policy and of the reference are computed anew.
        work = replace(workload(run, assumed), training=Training.of(run, assumed, forwards=2))
        line = synchronous(work, gpus, WARM_UP + STEPS)
        yield Comparison(NEMO, f"{other.label}, {gpus} GPUs", "absolute", one, _mean(line.steps))
        half = twice // 2
        line = one_step_off(work, half, half, WARM_UP + STEPS)
        label = f"{other.label}, one step off, {half} + {half} GPUs"
        yield Comparison(NEMO, label, "absolute", off, _mean(line.steps))


def _verl() -> Iterator[Comparison]:
    """Sampling as fast as in the synchronous run, training as fast as in the run itself."""
    # limit, GPUs, seconds of sampling; sampling + training GPUs, seconds of training, of a step
    work = _fitted(20480, 16, sampling=247.0, training=445.0, on=12)
    line = one_step_off(work, 4, 12, WARM_UP + STEPS)
    yield Comparison(VERL, "one step off, 4 + 12 GPUs", "overlap", 520.0, _mean(line.steps))
    for gpus, sampled, trained, step in (
        (32, 357.41, 269.80, 294.77),
        (64, 150.72, 156.98, 189.26),
        (128, 177.85, 113.16, 150.63),
    ):
        work = _fitted(28672, gpus, sampling=sampled, training=trained, on=gpus // 2)
        # Training takes a quarter of a batch at a time; sampling may be half a batch ahead.
        parts = 4
        part = replace(work, groups=work.groups // parts, sync_seconds=0.0, other_seconds=0.0)
        ahead = 1.5 * parts - 1
        line = asynchronous(part, gpus // 2, gpus // 2, parts * (WARM_UP + STEPS), ahead)
        steps = [sum(line.steps[i : i + parts]) for i in range(0, len(line.steps), parts)]
        label = f"fully asynchronous, {gpus // 2} + {gpus // 2} GPUs"
        yield Comparison(VERL, label, "overlap", step, _mean(steps) + work.sync_seconds)


def _fitted(limit: int, gpus: int, *, sampling: float, training: float, on: int) -> Workload:
    """Work of 512 prompts with 16 responses, whose speeds give published times.

    Args:
        limit: of a response, tokens.
        gpus: of the synchronous run.
        sampling: its seconds of sampling.
        training: seconds of training of the run that is to be found.
        on: its GPUs for training.
    """
    run = replace(
        RECIPES["qwen2.5-math-7b-grpo-s0"],
        train_batch_size=512,
        samples=16,
        mini_batch_size=32,
        max_response_length=limit,
        nodes=gpus // 8,
    )
    work = workload(run, H20)
    line = synchronous(work, gpus, WARM_UP + STEPS)
    slower = sampling / fmean(line.sampling)
    longer = training / (fmean(line.training) * gpus / on)
    old, trained = work.decoding, work.training
    return replace(
        work,
        decoding=replace(
            old,
            base=slower * old.base,
            each=slower * old.each,
            cached=slower * old.cached,
            prefill=slower * old.prefill,
        ),
        training=Training(longer * trained.seconds_a_token, longer * trained.seconds_a_square),
    )
