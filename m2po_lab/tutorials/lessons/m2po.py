"""Notebook 04: a handful of tokens for Algorithm 1, and a mini-batch with heavy tails."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from m2po_lab.core import TokenBatch, apply, eligible, objective, solve_threshold, sums
from m2po_lab.core.moments import m2

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

TOKENS = ("So", "x", "is", "4.", "Hence", "it", "must be", "7.")
"""Two answers of four tokens: the first one right (A = 1), the second wrong (A = -1)."""
LOG_RATIOS = ((0.05, 0.30, -0.40, 0.60), (-0.10, -0.25, 0.20, -0.80))
PROBABILITIES = ((0.5, 0.3, 0.6, 0.2), (0.5, 0.4, 0.3, 0.3))
"""Of the tokens under the policy that sampled them."""


def eight_tokens() -> TokenBatch:
    """The tokens of TOKENS, (2, 4)."""
    behavior = np.log(PROBABILITIES)
    return TokenBatch(
        behavior_logp=behavior,
        current_logp=behavior + np.array(LOG_RATIOS),
        advantage=np.array([1.0, -1.0]),
    )


@dataclass(frozen=True)
class Stage:
    """Algorithm 1 after it has dropped some tokens.

    Attributes:
        names: tokens of H, the largest d^2 first.
        square: their d^2, nats^2.
        dropped: how many have gone, from the front.
        mean: mean of d^2 over those that are left, nats^2; NaN for none.
        budget: the bound on it.
    """

    names: tuple[str, ...]
    square: Floats
    dropped: int
    mean: float
    budget: float


def stage(batch: TokenBatch, names: Sequence[str], dropped: int, budget: float) -> Stage:
    """Look at H after the `dropped` largest of it have gone."""
    inside = eligible(batch).ravel()
    square = np.where(inside, batch.log_ratio().ravel() ** 2, -1.0)
    order = np.argsort(-square, kind="stable")[: inside.sum()]
    left = np.zeros_like(inside)
    left[order[dropped:]] = True
    return Stage(
        names=tuple(names[i] for i in order),
        square=square[order],
        dropped=dropped,
        mean=float(m2(sums(batch.log_ratio().ravel(), left))),
        budget=budget,
    )


def heavy_tails(rows: int = 64, width: int = 64, scale: float = 0.15, seed: int = 0) -> TokenBatch:
    """A mini-batch whose log-ratios follow Student's t with 3 degrees of freedom.

    Most tokens hardly moved and a few moved far, as in the logs of language models.
    """
    rng = np.random.default_rng(seed)
    d = scale * rng.standard_t(3, (rows, width))
    return TokenBatch(
        behavior_logp=np.full(d.shape, -1.0),
        current_logp=d - 1.0,
        advantage=rng.choice([-1.0, 1.0], rows),
    )


def parts(batch: TokenBatch, count: int) -> list[TokenBatch]:
    """Cut a padded mini-batch into micro-batches of as many rows each."""
    names = ("behavior_logp", "current_logp", "advantage", "keep")
    columns = {name: np.array_split(getattr(batch, name), count) for name in names}
    return [TokenBatch(**{name: columns[name][i] for name in names}) for i in range(count)]


def dropped_by(names: Sequence[str], batch: TokenBatch) -> dict[str, float]:
    """Share of tokens that objectives drop."""
    return {name: 1 - float(objective(name).keep(batch).mean()) for name in names}


def split(batch: TokenBatch, counts: Sequence[int], budget: float = 0.04) -> dict[str, list[float]]:
    """Share of tokens dropped, by how the mask is found and into how many micro-batches one cuts.

    Returns:
        `one threshold for all`: M2PO, solved over all micro-batches and applied to each; M2PO and
        the authors' released code, solved in each micro-batch by itself.
    """
    found: dict[str, list[float]] = {
        "one threshold for all": [],
        "M2PO in each by itself": [],
        "released code in each": [],
    }
    for count in counts:
        cut = parts(batch, count)
        threshold = solve_threshold(cut, budget)
        masks = [
            [apply(one, threshold) for one in cut],
            [objective("m2po", budget=budget).keep(one) for one in cut],
            [objective("m2po_released", budget=budget).keep(one) for one in cut],
        ]
        for name, mask in zip(found, masks, strict=True):
            found[name].append(1 - float(np.concatenate(mask).mean()))
    return found


def growing(
    scales: Sequence[float], names: Sequence[str], seed: int = 0
) -> tuple[list[float], dict[str, list[float]]]:
    """Let the drift grow: M2 of H, and the share of tokens that each objective drops."""
    drift, share = [], {name: list[float]() for name in names}
    for scale in scales:
        batch = heavy_tails(scale=scale, seed=seed)
        drift.append(float(m2(sums(batch.log_ratio(), eligible(batch)))))
        for name, value in dropped_by(names, batch).items():
            share[name].append(value)
    return drift, share
