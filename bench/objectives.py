"""Time per token of each objective beside the public verl function, same tensors, same process.

    make .venv-verl/.have-verl        # verl 0.9.1 in an environment of its own
    .venv-verl/bin/python bench/objectives.py [--rows 256] [--width 2048] [--repeats 7]

Forward and backward of the loss with respect to the log-probs, in float32 as trainers pass them.
Three columns: verl's function as it is (float32 arithmetic, its own metrics), `Objective.loss`
(float64 arithmetic, checks for non-finite tokens, a dozen diagnostics), and `Objective.token_loss`
divided by the host under a mask that is at hand, as the verl plugin calls it. Before anything is
timed the gradients are compared: timing two functions that differ means nothing. Objectives that
verl does not have are timed alone; without verl in the environment the first column is empty.
"""

import argparse
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from m2po_lab.core import TokenBatch
from m2po_lab.core.objectives import OBJECTIVES, objective

VERL = {
    "dual_clip": ("vanilla", {"c": 3.0}, {}),
    "gspo_token": ("gspo", {"eps_low": 0.2, "eps_high": 0.2}, {}),
    "sapo": ("sapo", {}, {}),
    "gmpo": ("geo_mean", {"eps_low": 0.2, "eps_high": 0.2}, {}),
    "cispo": ("cispo", {"eps_low": 0.2, "eps_high": 0.2}, {}),
    "reinforce": ("gpg", {}, {}),
    "dppo_tv": ("dppo_tv", {"delta": 0.2, "cap": 20.0}, {"clip_ratio_c": 20.0}),
    "dppo_kl": ("dppo_kl", {"delta": 0.2, "cap": 20.0}, {"clip_ratio_c": 20.0}),
    "kl_cov": ("kl_cov", {"fraction": 0.0002, "coef": 0.1}, {}),
}
"""Objective -> (verl's loss mode, our parameters, fields of verl's ActorConfig that differ)."""
AGGREGATION = {
    "gspo_token": "sequence_mean_token_mean",
    "sapo": "sequence_mean_token_mean",
    "gmpo": "sequence_mean",
}
"""Where the public function has one of its own; token_mean otherwise."""
VERL_AGGREGATION = {
    "token_mean": "token-mean",
    "sequence_mean_token_mean": "seq-mean-token-mean",
    "sequence_mean": "seq-mean-token-mean",
}
TOLERANCE = 2e-4
"""Of a gradient in float32, relative to the largest one."""


def tensors(rows: int, width: int, seed: int = 0) -> dict[str, torch.Tensor]:
    """Student-t log-ratios, ragged rows, group-normalised advantages; float32."""
    generator = torch.Generator().manual_seed(seed)
    shape = (rows, width)
    behavior = -torch.empty(shape).exponential_(2.0, generator=generator)
    noise = torch.randn(shape, generator=generator)
    scale = torch.empty(shape).exponential_(1.0, generator=generator).sqrt()
    lengths = torch.randint(width // 4, width + 1, (rows,), generator=generator)
    keep = torch.arange(width)[None] < lengths[:, None]
    advantage = torch.randn(rows, 1, generator=generator) * keep
    return {
        "current_logp": (behavior + 0.05 * noise / scale.clamp(min=0.2)).clamp(max=-1e-3),
        "behavior_logp": behavior,
        "proximal_logp": (behavior + 0.02 * noise).clamp(max=-1e-3),
        "entropy": -behavior,
        "advantage": advantage,
        "keep": keep,
    }


def gradient(loss: Callable[[torch.Tensor], torch.Tensor], current: torch.Tensor) -> torch.Tensor:
    """Forward and backward once."""
    leaf = current.detach().clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(loss(leaf), leaf)
    return slope


def seconds(losses: dict[str, Any], current: torch.Tensor, repeats: int) -> dict[str, float]:
    """Best time of each, taken in turns so that a busy machine slows all alike."""
    taken: dict[str, list[float]] = {name: [] for name in losses}
    for turn in range(repeats + 1):
        for name, loss in losses.items():
            start = time.perf_counter()
            gradient(loss, current)
            if turn:
                taken[name].append(time.perf_counter() - start)
    return {name: min(times) for name, times in taken.items()}


def ours(name: str, data: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Our two ways: the whole loss, and the token loss that a host divides."""
    params = VERL[name][1] if name in VERL else {}
    chosen = objective(name, AGGREGATION.get(name, "token_mean"), **params)
    still = TokenBatch(**data)
    keep, divisor = chosen.keep(still), chosen.divisor(still)

    def batch(leaf: torch.Tensor) -> TokenBatch:
        return TokenBatch(**{**data, "current_logp": leaf})

    return {
        "loss": lambda leaf: chosen.loss(batch(leaf))[0],
        "token_loss": lambda leaf: (chosen.token_loss(batch(leaf), keep) / divisor).sum(),
    }


def verls(name: str, data: dict[str, torch.Tensor]) -> Any:
    """The public function as verl's actor calls it."""
    from verl.trainer.ppo.core_algos import get_policy_loss_fn
    from verl.workers.config import FSDPActorConfig

    mode, _, fields = VERL[name]
    config = FSDPActorConfig(strategy="fsdp", ppo_micro_batch_size_per_gpu=1, rollout_n=1, **fields)
    function, mask = get_policy_loss_fn(mode), data["keep"].float()
    how = VERL_AGGREGATION[AGGREGATION.get(name, "token_mean")]
    return lambda leaf: function(
        old_log_prob=data["behavior_logp"],
        log_prob=leaf,
        advantages=data["advantage"],
        response_mask=mask,
        loss_agg_mode=how,
        config=config,
    )[0]


def measure(name: str, data: dict[str, torch.Tensor], repeats: int, verl: bool) -> dict[str, Any]:
    """Compare gradients, then time; nanoseconds a valid token."""
    losses = ours(name, data)
    current, tokens = data["current_logp"], int(data["keep"].sum())
    difference = None
    if verl and name in VERL:
        losses = {"verl": verls(name, data), **losses}
        theirs, mine = (gradient(losses[k], current) for k in ("verl", "loss"))
        difference = float((theirs - mine).abs().max() / theirs.abs().max())
    taken = seconds(losses, current, repeats)
    return {
        "objective": name,
        **{f"{k}_ns": 1e9 * v / tokens for k, v in taken.items()},
        "gradient_difference": difference,
    }


def main(arguments: list[str] | None = None) -> None:
    """Print the table; exit 1 where a gradient differs from verl's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", help="objectives, separated by commas")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-verl", action="store_true", help="time ours alone")
    options = parser.parse_args(arguments)
    data = tensors(options.rows, options.width)
    verl = not options.no_verl and importlib.util.find_spec("verl") is not None
    names = options.only.split(",") if options.only else sorted(OBJECTIVES)
    print(
        f"{int(data['keep'].sum()):,} valid tokens of {options.rows} x {options.width}, float32,"
        f" CPU, {torch.get_num_threads()} threads, torch {torch.__version__}; ns a token, best of"
        f" {options.repeats}"
    )
    print(f"{'objective':18}{'verl':>8}{'loss':>8}{'token_loss':>12}  gradient against verl")
    results = []
    for name in names:
        row = measure(name, data, options.repeats, verl)
        results.append(row)
        theirs = f"{row['verl_ns']:8.1f}" if "verl_ns" in row else " " * 8
        difference = row["gradient_difference"]
        equal = "" if difference is None else f"{difference:.1e}"
        print(f"{name:18}{theirs}{row['loss_ns']:8.1f}{row['token_loss_ns']:12.1f}  {equal}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    wrong = [r["objective"] for r in results if (r["gradient_difference"] or 0) > TOLERANCE]
    if wrong:
        raise SystemExit(f"gradients differ from verl's: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
