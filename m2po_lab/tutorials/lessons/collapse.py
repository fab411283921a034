"""Notebook 03: the four arms of the paper's first figure on the chain of bandits, six seeds."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import numpy as np

from m2po_lab.core import objective
from toy_envs.bandit import BanditPolicy
from toy_envs.bandit_sweep import Curves, sweep
from toy_envs.chain import Chain
from toy_envs.softmax import Features

SEEDS = range(200, 206)
"""The first of the seeds that LOG.md reports; they chose no setting."""
ARMS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "GRPO, fresh": ("ppo", 0),
        "GRPO, stale": ("ppo", 256),
        "no trust region, stale": ("is", 256),
        "M2PO, stale": ("m2po", 256),
    }
)
"""Arm -> objective, and staleness in updates."""
RATE = 0.06
"""Learning rate of the recipe."""
LAG, FALLEN = 256, 0.6
FINAL_STEPS = 12


@cache
def starts(*, shared: bool = True) -> tuple[BanditPolicy, ...]:
    """Warm-started policies; without shared weights a state learns nothing from another."""
    features = None if shared else Features(random=0)
    return tuple(BanditPolicy(Chain(), seed, features=features) for seed in SEEDS)


@cache
def trained(
    name: str, staleness: int, learning_rate: float = RATE, *, shared: bool = True
) -> Curves:
    """Train all seeds side by side, 640 updates; asked again, it remembers."""
    return sweep(
        starts(shared=shared),
        SEEDS,
        objective(name),
        staleness=staleness,
        learning_rate=learning_rate,
    )


def one_seed(seed: int, staleness: int, learning_rate: float) -> dict[str, Curves]:
    """Train one policy without a trust region and with M2PO."""
    policy = [BanditPolicy(Chain(), seed)]
    return {
        label: sweep(
            policy, [seed], objective(name), staleness=staleness, learning_rate=learning_rate
        )
        for label, name in (("no trust region", "is"), ("M2PO", "m2po"))
    }


def arms() -> dict[str, Curves]:
    """Train the four arms."""
    return {label: trained(name, staleness) for label, (name, staleness) in ARMS.items()}


def final(curves: Curves) -> float:
    """Accuracy over the last steps, median over seeds."""
    return float(np.median(curves.value[:, -FINAL_STEPS:].mean(axis=1)))


def peak(curves: Curves) -> float:
    """Highest accuracy, median over seeds."""
    return float(np.median(curves.value.max(axis=1)))


def fallen(curves: Curves) -> int:
    """How many seeds fall below FALLEN after they were above it."""
    above = curves.value >= FALLEN
    later = np.arange(curves.value.shape[1])[None] > above.argmax(axis=1)[:, None]
    return int((above.any(axis=1) & (later & ~above).any(axis=1)).sum())


def masked_late(curves: Curves) -> float:
    """Share of tokens dropped from update 256 on, mean over seeds."""
    return float(curves.masked_fraction[:, curves.updates >= LAG].mean())
