"""Notebook 02: a chain of bandits trained by PPO's clip on stale rollouts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2po_lab.core import TokenBatch, objective
from m2po_lab.logs import open_log
from toy_envs.bandit import BanditPolicy
from toy_envs.bandit_sweep import Curves, sweep
from toy_envs.chain import Chain
from toy_envs.recipes import Run
from toy_envs.results import entropy_by_ratio
from toy_envs.train import train

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

COLUMNS = ("behavior_logp", "current_logp", "advantage", "entropy")
SAMPLED = 0.3
LEARNED = 0.6
"""An accuracy on the way: from .15 at the start to .99."""


@dataclass(frozen=True, eq=False)
class Logged:
    """What one run leaves behind, in memory.

    Attributes:
        batch: every token that was trained on, in one ragged batch.
        copies: which of them only copy a digit of the prompt; the others write a sum.
        reward: accuracy of fresh answers at each step.
        masked: share of tokens the objective dropped, each step.
        entropy_by_ratio: mean entropy by |r - 1|, see `toy_envs.results.entropy_by_ratio`.
    """

    batch: TokenBatch
    copies: Mask
    reward: Floats
    masked: Floats
    entropy_by_ratio: dict[str, Any]


def train_and_read(name: str, staleness: int, seed: int = 0, steps: int | None = None) -> Logged:
    """Train once, read the log back as any other log, and leave nothing on disk."""
    with TemporaryDirectory() as folder:
        run = Run(recipe="bandit", objective=name, staleness=staleness, seed=seed, steps=steps)
        metrics = train(run, Path(folder))
        log = Path(folder) / "log"
        batch = _joined(list(open_log(log)))
        by_ratio = entropy_by_ratio([log])
    position = np.asarray(batch.row_and_position[1])
    return Logged(
        batch=batch,
        copies=position % 2 == 0,
        reward=np.array([entry["reward"] for entry in metrics]),
        masked=np.array([entry["masked_fraction"] for entry in metrics]),
        entropy_by_ratio=by_ratio,
    )


def _joined(parts: Sequence[TokenBatch]) -> TokenBatch:
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
    return TokenBatch(**columns, lengths=np.concatenate([part.lengths for part in parts]))


@dataclass(frozen=True)
class Dropped:
    """What a clip of one width would have dropped of a run's tokens.

    Attributes:
        eps: the width, both sides.
        share: of all tokens.
        mass: of the gradient mass sum r |A|.
        of_copies: of the tokens that copy.
        of_sums: of the tokens that write a sum.
        entropy_dropped: mean entropy of the dropped tokens, nats.
        entropy_kept: mean entropy of the others with A != 0, nats.
    """

    eps: float
    share: float
    mass: float
    of_copies: float
    of_sums: float
    entropy_dropped: float
    entropy_kept: float


def dropped(run: Logged, eps: float) -> Dropped:
    """Apply a clip to the tokens of a run after the fact."""
    chosen = objective("ppo", eps_low=eps, eps_high=eps)
    _, report = chosen.loss(run.batch)
    gone = ~np.asarray(chosen.keep(run.batch))
    teaching = np.asarray(run.batch.advantage) != 0
    entropy = np.asarray(run.batch.entropy, dtype=np.float64)
    return Dropped(
        eps=eps,
        share=float(gone.mean()),
        mass=1 - float(report["mass_kept"]),
        of_copies=float(gone[run.copies].mean()),
        of_sums=float(gone[~run.copies].mean()),
        entropy_dropped=float(entropy[gone].mean()),
        entropy_kept=float(entropy[teaching & ~gone].mean()),
    )


def gradient_weight(ratios: Floats, advantage: float, name: str, **params: Any) -> Floats:
    """Weight w that an objective gives a token of a ratio and an advantage, for each ratio.

    Each ratio is a response of one token, sampled with probability SAMPLED; the proximal policy is
    the current one, as at the first update on a rollout.
    """
    behavior = np.full((len(ratios), 1), math.log(SAMPLED))
    current = behavior + np.log(ratios)[:, None]
    batch = TokenBatch(
        behavior_logp=behavior,
        proximal_logp=current,
        current_logp=current,
        advantage=np.full(len(ratios), advantage),
    )
    return np.asarray(objective(name, **params).weight(batch))[:, 0]


def starts(seeds: Sequence[int]) -> list[BanditPolicy]:
    """Warm-started policies, one a seed."""
    return [BanditPolicy(Chain(), seed) for seed in seeds]


def trained(policies: list[BanditPolicy], name: str, staleness: int, **params: Any) -> Curves:
    """Train all policies side by side; seeds of the rollouts count from 0."""
    seeds = range(len(policies))
    return sweep(policies, seeds, objective(name, **params), staleness=staleness)


def updates_to(curves: Curves, accuracy: float = LEARNED) -> float:
    """Updates until the accuracy is first reached, median over seeds; NaN where some never do."""
    reached = curves.value >= accuracy
    if not reached.any(axis=1).all():
        return float("nan")
    return float(np.median(curves.updates[reached.argmax(axis=1)]))
