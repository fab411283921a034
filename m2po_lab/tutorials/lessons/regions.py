"""Notebook 05: what every objective makes of one stale mini-batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from m2po_lab.core import TokenBatch, objective
from m2po_lab.exactness import compare, short_sequence, stale_steps
from m2po_lab.logs import open_log
from toy_envs.recipes import Run
from toy_envs.train import train

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FAMILIES = MappingProxyType(
    {
        "no trust region": ("is", "reinforce"),
        "a bound for each token": ("ppo", "dapo", "dual_clip", "icepop", "dppo_tv"),
        "a cap on the weight": ("cispo", "tis", "topr", "decoupled_ppo"),
        "soft": ("sapo", "maspo"),
        "a bound for each answer": ("gspo", "gmpo", "opsm", "mis"),
        "a budget for the mini-batch": (
            *("m2po", "m2po_released", "m2po_areal", "m2po_all_tokens", "bapo"),
        ),
    }
)
"""What decides about a token -> objectives."""
NAMES = tuple(name for names in FAMILIES.values() for name in names)
COLUMNS = ("behavior_logp", "proximal_logp", "current_logp", "advantage", "entropy")
STEPS = 48
"""Steps of training before the batch is taken: 192 updates."""


def stale_batch(staleness: int, seed: int = 0) -> TokenBatch:
    """Train the chain bandit for a while on stale rollouts; give the last one it trained on.

    Decoupled PPO trains it, which logs proximal log-probs too, so every objective has what it
    needs. (256, 10) tokens; the current policy of each row is that of its mini-batch.
    """
    with TemporaryDirectory() as folder:
        run = Run(
            recipe="bandit", objective="decoupled_ppo", staleness=staleness, seed=seed, steps=STEPS
        )
        train(run, Path(folder))
        parts = list(open_log(Path(folder) / "log"))
    columns: dict[str, list[Floats]] = {name: [] for name in COLUMNS}
    for part in parts:
        last = part.rows.step == STEPS - 1
        for name in COLUMNS:
            columns[name].append(np.asarray(part.to_padded(getattr(part, name)))[last])
    return TokenBatch(**{name: np.concatenate(pieces) for name, pieces in columns.items()})


@dataclass(frozen=True, eq=False)
class Judged:
    """What one objective makes of a batch.

    Attributes:
        name: of the objective.
        family: a key of FAMILIES.
        dropped: share of tokens with A != 0 whose gradient is gone, of all tokens.
        mass: sum |w A| over sum |r A|; 1 without a trust region.
        worth: ESS/n of its weights.
        weight: w of each token, (B, T); 0 where dropped.
        gone: which tokens are dropped.
    """

    name: str
    family: str
    dropped: float
    mass: float
    worth: float
    weight: Floats
    gone: Mask


def judge(batch: TokenBatch, names: Sequence[str] = NAMES) -> list[Judged]:
    """Ask objectives with their default parameters about a batch."""
    family = {name: title for title, members in FAMILIES.items() for name in members}
    found = []
    for name in names:
        chosen = objective(name)
        _, report = chosen.loss(batch)
        keep, weight = chosen.judge(batch)
        found.append(
            Judged(
                name=name,
                family=family[name],
                dropped=float(report["masked_fraction"]),
                mass=float(report["mass_kept"]),
                worth=float(report["weight_ess_fraction"]),
                weight=np.asarray(weight),
                gone=~np.asarray(keep) & (np.asarray(batch.advantage) != 0),
            )
        )
    return found


@dataclass(frozen=True)
class Exact:
    """Bias and spread of one objective's gradient at each lag, without sampling noise.

    Attributes:
        lags: updates between the policy that sampled and the one in training.
        bias: |E g - true gradient| / |true gradient|.
        spread: standard deviation of one answer's gradient over |true gradient|.
    """

    lags: tuple[int, ...]
    bias: tuple[float, ...]
    spread: tuple[float, ...]


def exact(names: Sequence[str], lags: int = 8) -> dict[str, Exact]:
    """Enumerate every answer of three tokens (and every pair of them) at each lag."""
    rows = compare(stale_steps(short_sequence(), lags=lags), names, rows=2)
    found = {}
    for name in names:
        mine = [row for row in rows if row.objective == name]
        found[name] = Exact(
            lags=tuple(row.lag for row in mine),
            bias=tuple(row.relative_bias for row in mine),
            spread=tuple(row.relative_deviation for row in mine),
        )
    return found
