"""Notebook 01: a one-question bandit whose answers an old policy sampled and a new one is asked of.

Policies are vectors of log-probs over the answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2po_lab.core import STATISTICS, TokenBatch, objective, sequence_log_ratio, sums
from m2po_lab.core.moments import ess_fraction
from m2po_lab.exactness import log_policy

Floats = NDArray[np.float64]


def tilted(log_mu: Floats, answer: int, nats: float) -> Floats:
    """Raise the logit of one answer, and let the softmax share what is left."""
    logits = log_mu + nats * np.eye(len(log_mu))[answer]
    return np.asarray(log_policy(logits[None])[0])


def sample(
    log_mu: Floats,
    log_pi: Floats,
    reward: Floats,
    shape: tuple[int, int],
    rng: np.random.Generator,
) -> TokenBatch:
    """Draw answers from the old policy and note what both policies think of them.

    Args:
        log_mu: (A,) of the policy that samples.
        log_pi: (A,) of the policy that is asked about.
        reward: (A,) of each answer; it stands in for the advantage.
        shape: rows, answers a row.
        rng: draws.
    """
    answer = rng.choice(len(log_mu), shape, p=np.exp(log_mu))
    return TokenBatch(
        behavior_logp=log_mu[answer], current_logp=log_pi[answer], advantage=reward[answer]
    )


def population(log_mu: Floats, log_pi: Floats, size: int = 100) -> TokenBatch:
    """One row that holds every answer as often as the old policy gives it: no sampling noise."""
    answer = np.repeat(np.arange(len(log_mu)), np.rint(size * np.exp(log_mu)).astype(int))[None]
    return TokenBatch(behavior_logp=log_mu[answer], current_logp=log_pi[answer])


@dataclass(frozen=True)
class Estimates:
    """What many repetitions of one experiment estimate.

    Attributes:
        truth: expected reward of the new policy.
        plain: mean reward of each repetition.
        weighted: mean of ratio times reward of each repetition.
        fresh: mean reward of as many answers that the new policy sampled itself.
        ess_fraction: of all weights together.
    """

    truth: float
    plain: Floats
    weighted: Floats
    fresh: Floats
    ess_fraction: float


def estimates(
    log_mu: Floats,
    log_pi: Floats,
    reward: Floats,
    *,
    samples: int = 200,
    repetitions: int = 2000,
    seed: int = 0,
) -> Estimates:
    """Estimate the new policy's reward from the old policy's answers, many times over."""
    rng = np.random.default_rng(seed)
    stale = sample(log_mu, log_pi, reward, (repetitions, samples), rng)
    fresh = sample(log_pi, log_pi, reward, (repetitions, samples), rng)
    return Estimates(
        truth=float(np.exp(log_pi) @ reward),
        plain=_row_means(stale, "reinforce"),
        weighted=_row_means(stale, "is"),
        fresh=_row_means(fresh, "reinforce"),
        ess_fraction=float(ess_fraction(sums(stale.log_ratio(), stale.keep))),
    )


def _row_means(batch: TokenBatch, weights: str) -> Floats:
    """Mean of weight times reward in each row; `reinforce` weighs all alike."""
    weighed = objective(weights).weight(batch) * batch.advantage
    return np.asarray(batch.row_sum(weighed) / batch.row_counts)


def worth_of_answers(
    log_mu: Floats, log_pi: Floats, lengths: Sequence[int], *, rows: int = 20000, seed: int = 0
) -> list[float]:
    """ESS/n of whole responses of some lengths, whose tokens are drawn one by one."""
    rng = np.random.default_rng(seed)
    zero = np.zeros_like(log_mu)
    batch = sample(log_mu, log_pi, zero, (rows, max(lengths)), rng)
    position = np.arange(max(lengths))[None]
    worth = []
    for length in lengths:
        cut = batch.replace(keep=np.broadcast_to(position < length, batch.shape))
        d, keep = sequence_log_ratio(cut, kind="product")
        worth.append(float(ess_fraction(sums(d, keep))))
    return worth


def statistics(batch: TokenBatch, names: Sequence[str]) -> dict[str, float]:
    """Statistics of a batch by name, those that are functions of sums."""
    whole = sums(batch.log_ratio(), batch.keep)
    return {name: float(_finish(name)(whole)) for name in names}


def mini_batches(
    log_mu: Floats, log_pi: Floats, *, tokens: int = 64, count: int = 2000, seed: int = 0
) -> dict[str, Floats]:
    """k1, k3 and M2 of many mini-batches of the same two policies."""
    rng = np.random.default_rng(seed)
    batch = sample(log_mu, log_pi, np.zeros_like(log_mu), (count, tokens), rng)
    parts = [sums(d[None], np.ones((1, tokens), np.bool_)) for d in batch.log_ratio()]
    return {
        name: np.array([float(_finish(name)(part)) for part in parts])
        for name in ("k1", "k3", "m2")
    }


def _finish(name: str) -> Any:
    finish = STATISTICS[name].finish
    if finish is None:
        raise ValueError(f"{name} is no function of sums")
    return finish


def along_tilt(
    log_mu: Floats, answer: int, nats: Sequence[float], names: Sequence[str]
) -> dict[str, list[float]]:
    """Statistics while one answer is tilted further and further; exact, without sampling."""
    found = [statistics(population(log_mu, tilted(log_mu, answer, n)), names) for n in nats]
    return {name: [one[name] for one in found] for name in names}
