"""Speed of the toy: tokens a second with and without a KV cache, and the time of the four arms.

python bench/toy.py            sampling, and one training step
python bench/toy.py --arms     the four arms of running-sum, one seed each, as `toy figure` runs
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from m2po_lab.core.objectives import objective
from toy_envs.lm_policy import LMPolicy
from toy_envs.parallel import run_all
from toy_envs.policy import draw, group_advantage
from toy_envs.recipes import ARMS
from toy_envs.small_lm import SmallLM, SmallLMConfig
from toy_envs.tasks import RunningSum

ROWS, REPEATS = 256, 5


def best(job: Callable[[], object]) -> float:
    """Shortest of several runs, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


@torch.no_grad()
def without_cache(model: SmallLM, prompts: torch.Tensor, length: int) -> None:
    """Sample by computing everything anew for each token."""
    rng, seen = np.random.default_rng(0), prompts
    for _ in range(length):
        token, _, _ = draw(model(seen)[0][:, -1].double().numpy(), rng)
        seen = torch.cat([seen, torch.from_numpy(token)[:, None]], dim=1)


def sampling(digits: int) -> dict[str, float]:
    """Tokens a second for 256 answers to `digits` digits."""
    task = RunningSum(digits=digits)
    length = task.answer_length
    model = SmallLM(SmallLMConfig(context=task.prompt_length + length))
    prompts = torch.from_numpy(task.prompts(np.random.default_rng(0), ROWS))
    cached = best(lambda: model.sample(prompts, length, np.random.default_rng(0)))
    plain = best(lambda: without_cache(model, prompts, length))
    tokens = ROWS * length
    return {
        "answer_length": length,
        "tokens_per_second": tokens / cached,
        "tokens_per_second_without_cache": tokens / plain,
        "speedup": plain / cached,
    }


def step() -> dict[str, float]:
    """Seconds of a rollout and of its four updates, per objective."""
    policy = LMPolicy(RunningSum(), SmallLM(SmallLMConfig()), prompts=32, samples=8)
    rollout = policy.rollout(np.random.default_rng(0))
    reward = np.random.default_rng(0).integers(0, 2, rollout.n_rows).astype(float)
    rollout = rollout.replace(reward=reward, advantage=group_advantage(reward, 8))
    seconds = {"rollout": best(lambda: policy.rollout(np.random.default_rng(0)))}
    for name in ("is", "ppo", "m2po"):
        goal = objective(name)
        seconds[f"update_{name}"] = best(lambda: policy.update(rollout.rows(0, 64), goal, 1e-9))  # noqa: B023
    return seconds


def arms() -> dict[str, float]:
    """Wall-clock seconds of the four arms with one seed, warm start and process starts included."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        start = time.perf_counter()
        run_all({out / arm.name: arm.run("running-sum", 0) for arm in ARMS}, out / "warm")
        return {"four_arms": time.perf_counter() - start}


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", action="store_true", help="run the four arms (minutes)")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    report = {"sampling": [sampling(5), sampling(30)], "seconds": step()}
    if chosen.arms:
        report["seconds"] |= arms()
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
