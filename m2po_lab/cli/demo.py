"""`m2po-lab demo`: a small run made here, a real log that ships with the package, their reports."""

import json
from importlib.resources import as_file, files
from pathlib import Path

from m2po_lab.cli import output
from m2po_lab.cli.values import directory

LOG, METRICS = "trl_grpo_bf16.jsonl", "trl_metrics.json"
STALENESS, SEED, STEPS = 256, 209, 84
"""18 of 24 seeds fall below .6 within 640 updates; this one is early, so the demo can stop soon."""
PAGE = "report.html"


def demo(*, out: Path = Path("m2po-lab-demo")) -> int:
    """Train a bandit on stale rollouts, analyze its log and that of a real TRL run.

    Parameters
    ----------
    out
        Directory for the run and the reports.
    """
    from m2po_lab.cli.analyze import analyze
    from m2po_lab.cli.flags import Flags

    directory("--out", out)
    _bandit(out / "bandit")
    status = analyze(str(out / "bandit" / "log"), flags=Flags(out=out / "bandit", quiet=True))
    output.say(
        f"  Its report lies in {out / 'bandit'}: open {out / 'bandit' / PAGE}\n\n"
        "A real TRL GRPO run (Qwen2.5-0.5B, vLLM rollouts, bf16 trainer, lags 0 to 3), and what\n"
        f"its trainer logged. {_rewards()}\n\n"
    )
    data = files("m2po_lab.data")
    with as_file(data.joinpath(LOG)) as log, as_file(data.joinpath(METRICS)) as metrics:
        return analyze(str(log), str(metrics), flags=Flags(out=out)) or status


def _rewards() -> str:
    """Say how the reward of the real run went, out of its metrics."""
    logged = json.loads(files("m2po_lab.data").joinpath(METRICS).read_text(encoding="utf-8"))
    reward = [f"{entry['reward']:.2f}" for entry in logged if "reward" in entry]
    return f"The reward of its {len(reward)} rollout batches: {', '.join(reward)}."


def _bandit(out: Path) -> None:
    """Train the chain bandit without a trust region; say how its accuracy rose and fell."""
    from toy_envs.recipes import RECIPES, Run
    from toy_envs.train import train

    recipe = RECIPES["bandit"]
    updates = STEPS * recipe.updates_per_step
    output.say(
        f"A toy: running sums as a chain of bandits, {updates} updates in numpy, each on rollouts\n"
        f"{STALENESS} updates old, without a trust region.\n"
    )
    run = Run(recipe="bandit", objective="is", staleness=STALENESS, seed=SEED, steps=STEPS)
    metrics = train(run, out)
    reward = [entry["reward"] for entry in metrics]
    peak = max(range(len(reward)), key=reward.__getitem__)
    low = min(range(peak, len(reward)), key=reward.__getitem__)
    shown = (0, peak, low, len(reward) - 1)
    path = ", ".join(f"{reward[i]:.2f} (update {metrics[i]['updates']:g})" for i in shown)
    output.say(
        f"  Accuracy: {path}.\n  With M2PO: m2po-lab toy run bandit --objective m2po --out DIR\n"
    )
