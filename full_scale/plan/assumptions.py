"""What a plan assumes about machine, engines and answers; each can be given another value.

Where nothing is published a value is a guess, and its line says so.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches

from full_scale.errors import UnusableError
from full_scale.recipes import Recipe


@dataclass(frozen=True)
class Assumptions:
    """Numbers that no recipe holds.

    Attributes:
        gpu_gb: memory of a GPU, 1e9 bytes; an H100 with 80 GB shows 81559 MiB.
        peak_tflops: dense bfloat16 of a GPU, 1e12 operations a second (H100 SXM data sheet).
        bandwidth_tb: memory of a GPU, 1e12 bytes a second (H100 SXM data sheet).
        mfu: share of the peak that an update reaches, counting 6 operations a parameter and token
            and not what checkpointing recomputes. A guess from FSDP runs of this size.
        decode_bandwidth: share of the bandwidth that sampling reaches. A guess.
        decode_compute: share of the peak that the matrix products of sampling reach. A guess.
        token_ms: time of a sampled token beside memory and arithmetic: scheduler, sampler, graph
            launches. A guess for vLLM.
        sequences: responses an engine works on at a time, at most (verl's `max_num_seqs`).
        prompt_mean: tokens of a prompt. A guess for competition problems.
        response_mean: tokens of a response after the limit has cut it; 0 takes a quarter of the
            limit, at most 1800. A guess, and what a plan depends on most.
        response_sigma: standard deviation of the logarithm of the length before the limit. A guess;
            0 makes all responses equally long.
        switch_seconds: between sampling and training on the same GPUs: sleep, wake, weights.
        sync_seconds: to bring weights to GPUs of their own; verl reports .3 s over NCCL.
        other_seconds: a step's rest: advantages, metrics, the last rewards, the queue.
        selection_ns: M2PO's threshold, time of a rank for a token; measured on a processor by
            bench/verl_overhead.py.
        overhead_gb: of a GPU, for CUDA, NCCL and what the allocator cannot use. A guess.
        vllm_gb: of a GPU, for vLLM's activations and graphs, inside its share. A guess.
        logit_bytes: of one logit while the loss is computed: a bfloat16 value and its gradient.
            Without flash-attn's cross-entropy it is 8 or more.
        disk_gb: speed of checkpoints, 1e9 bytes a second. A guess.
        evaluated: responses of an evaluation: eight sets of about 1980 problems, 4 responses each.
        seed: of the simulated lengths.
    """

    gpu_gb: float = 85.5
    peak_tflops: float = 989.0
    bandwidth_tb: float = 3.35
    mfu: float = 0.35
    decode_bandwidth: float = 0.7
    decode_compute: float = 0.5
    token_ms: float = 5.0
    sequences: int = 256
    prompt_mean: float = 150.0
    response_mean: float = 0.0
    response_sigma: float = 1.0
    switch_seconds: float = 5.0
    sync_seconds: float = 1.0
    other_seconds: float = 2.0
    selection_ns: float = 36.0
    overhead_gb: float = 4.0
    vllm_gb: float = 3.0
    logit_bytes: float = 4.0
    disk_gb: float = 2.0
    evaluated: int = 7900
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what no machine has.

        Raises:
            UnusableError: a value out of range.
        """
        for each in fields(self):
            value, zero = getattr(self, each.name), each.name in MAY_BE_ZERO
            if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
                bound = "of at least 0" if zero else "above 0"
                raise UnusableError(each.name, f"{value:g} is not a number {bound}")
            if each.name in SHARES and value > 1:
                raise UnusableError(each.name, f"{value:g} is above 1", "it is a share")

    def lengths_of(self, recipe: Recipe) -> float:
        """Mean tokens of a response.

        Raises:
            UnusableError: it is above the recipe's limit.
        """
        limit = recipe.max_response_length
        mean = self.response_mean or min(1800.0, limit / 4)
        if mean > limit:
            raise UnusableError("response_mean", f"{mean:g} is above the limit of {limit}")
        return mean


SHARES = ("mfu", "decode_bandwidth", "decode_compute")
MAY_BE_ZERO = (
    "token_ms",
    "response_mean",
    "response_sigma",
    "switch_seconds",
    "sync_seconds",
    "other_seconds",
    "selection_ns",
    "overhead_gb",
    "vllm_gb",
    "evaluated",
    "seed",
)


def changed(assumptions: Assumptions, values: Mapping[str, str]) -> Assumptions:
    """Take other values, as typed.

    Raises:
        UnusableError: an unknown name, or a value that is no number in range.
    """
    defaults = asdict(Assumptions())
    parsed: dict[str, float] = {}
    for name, text in values.items():
        if name not in defaults:
            close = get_close_matches(name, defaults, n=1)
            remedy = f"did you mean {close[0]}?" if close else f"one of {', '.join(defaults)}"
            raise UnusableError(name, "is no assumption", remedy)
        whole = isinstance(defaults[name], int)
        try:
            parsed[name] = int(text) if whole else float(text)
        except ValueError as error:
            kind = "a whole number" if whole else "a number"
            raise UnusableError(name, f"{text!r} is not {kind}") from error
    return replace(assumptions, **parsed)  # type: ignore[arg-type]
