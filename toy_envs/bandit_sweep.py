"""Many seeds of a bandit run side by side, measured exactly instead of from samples.

The same rollouts, masks and weights as `toy_envs.train` gives one seed at a time, without its log:
for figures over a dozen seeds, and for settings that no recipe names.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from m2po_lab.core.objectives import Objective
from toy_envs.bandit import BanditPolicy, sample, token_pull
from toy_envs.chain import Floats, answer_states
from toy_envs.closed_form import token_drift, value
from toy_envs.policy import Rollout, group_advantage
from toy_envs.softmax import Adam, log_policy, weight_gradient
from toy_envs.staleness import StaleQueue, chosen_rows
from toy_envs.train import PROXIMAL_IF_GIVEN, UNSCALED, generator


@dataclass(frozen=True, eq=False, kw_only=True)
class Curves:
    """One entry a seed and step; what describes the policy is exact, not sampled.

    Attributes:
        updates: (steps,) updates before the step.
        value: (K, steps) expected reward of the policy at the start of the step.
        m2: (K, steps) E[d^2] of all tokens, current policy against the one that sampled, nats^2.
        chi2: (K, steps) E[r^2] - 1 of the same.
        ess_fraction: (K, steps) of the same.
        masked_fraction: (K, steps) tokens with A != 0 whose gradient the objective dropped, of all.
        gradient_norm: (K, steps) largest of the step, before clipping.
    """

    updates: NDArray[np.int64]
    value: Floats
    m2: Floats
    chi2: Floats
    ess_fraction: Floats
    masked_fraction: Floats
    gradient_norm: Floats


class Together:
    """K policies of one kind, sampled and trained in step.

    Args:
        policies: start policies that differ in their seeds only; left as they are.
        seeds: of their rollouts.
    """

    def __init__(self, policies: Sequence[BanditPolicy], seeds: Sequence[int]) -> None:
        """Stack features and weights."""
        one = policies[0]
        self.bandit, self.samples, self.prompts = one.bandit, one.samples, one.prompts
        self.gradient_clip, self.seeds, self.many = one.gradient_clip, seeds, len(seeds)
        self.features = np.stack([policy.features for policy in policies])
        self.optimizer = Adam(np.stack([p.optimizer.weights for p in policies]), one.optimizer.eps)

    def tables(self) -> Floats:
        """Log-probs (K, S, A)."""
        return log_policy(self.features, self.optimizer.weights)

    def rollout(self, tables: Floats, use: str, index: int, *, scaled: bool) -> Rollout:
        """Sample one rollout a seed: K * R rows, seed by seed."""
        rngs = [generator(seed, use, index) for seed in self.seeds]
        drawn = np.concatenate([self.bandit.prompts(rng, self.prompts) for rng in rngs])
        prompts = np.repeat(drawn, self.samples, axis=0)
        seed = np.repeat(np.arange(self.many), self.prompts * self.samples)
        rng = cast("np.random.Generator", _Generators(rngs))
        whole = sample(self.bandit, lambda state: tables[seed, state], prompts, rng)
        return whole.replace(advantage=group_advantage(whole.reward, self.samples, scaled=scaled))

    def logp(self, tables: Floats, part: Rollout) -> Floats:
        """Log-probs of the answers (K * R, T), each under its seed's table."""
        states = answer_states(self.bandit, part.prompts, part.tokens)
        seed = np.repeat(np.arange(self.many), part.n_rows // self.many)[:, None]
        return np.asarray(tables[seed, states, part.tokens])

    def update(
        self, part: Rollout, goal: Objective, learning_rate: float
    ) -> tuple[NDArray[np.bool_], Floats]:
        """Take one step of every seed; return the keep mask (K * R, T) and the norms (K,)."""
        tables = self.tables()
        pull, keep = token_pull(part, self.logp(tables, part), goal, self.many)
        states = answer_states(self.bandit, part.prompts, part.tokens)
        flat = (self.many, -1)
        ascent = weight_gradient(
            self.features, tables, states.reshape(flat), part.tokens.reshape(flat), pull
        )
        return keep, self.optimizer.step(ascent, learning_rate, self.gradient_clip)


class _Generators:
    """The generators of several seeds as one: each draws its own block of rows."""

    def __init__(self, rngs: Sequence[np.random.Generator]) -> None:
        self._rngs = rngs

    def random(self, shape: tuple[int, int]) -> Floats:
        rows = shape[0] // len(self._rngs)
        return np.concatenate([rng.random((rows, shape[1])) for rng in self._rngs])


def sweep(
    policies: Sequence[BanditPolicy],
    seeds: Sequence[int],
    goal: Objective,
    *,
    staleness: int = 256,
    steps: int = 160,
    learning_rate: float = 0.06,
    decay: bool = False,
    updates_per_step: int = 4,
) -> Curves:
    """Train start policies side by side on stale rollouts.

    Args:
        policies: start policies that differ in their seeds only; left as they are.
        seeds: of their rollouts.
        goal: the objective.
        staleness: updates between sampling and training.
        steps: rollouts trained on.
        learning_rate: of Adam.
        decay: the learning rate falls linearly to 0.
        updates_per_step: mini-batches a rollout is split into.

    Raises:
        ValueError: staleness is negative or not a multiple of the updates a step.
    """
    queue, samplers = StaleQueue(staleness, updates_per_step), deque[Floats]()
    group = Together(policies, seeds)
    dynamics, scaled = group.bandit.dynamics(), goal.name not in UNSCALED
    for i in range(queue.first):
        samplers.append(group.tables())
        queue.push(group.rollout(samplers[-1], "start", i, scaled=scaled))

    rng = np.random.default_rng(0)  # the FIFO draws nothing from it
    points: list[tuple[Floats, ...]] = []
    for step in range(steps):
        tables = group.tables()
        samplers.append(tables)
        queue.push(group.rollout(tables, "rollout", step, scaled=scaled))
        stale, drift = queue.pop(rng), token_drift(dynamics, samplers.popleft(), tables)
        if "proximal_logp" in goal.needs or goal.name in PROXIMAL_IF_GIVEN:
            stale = stale.replace(proximal_logp=group.logp(tables, stale))
        rows = np.arange(stale.n_rows).reshape(group.many, updates_per_step, -1)
        masked, norms = np.zeros(group.many), []
        for i in range(updates_per_step):
            left = 1 - (step + i / updates_per_step) / steps if decay else 1.0
            part = chosen_rows(stale, rows[:, i].ravel())
            keep, norm = group.update(part, goal, learning_rate * left)
            dropped = part.keep & ~keep & (part.advantage != 0)[:, None]
            masked += dropped.reshape(group.many, -1).mean(axis=1) / updates_per_step
            norms.append(norm)
        exact = value(dynamics, tables), drift.m2, drift.chi2, drift.ess_fraction
        points.append((*exact, masked, np.max(norms, axis=0)))
    worth, m2, chi2, ess, masks, largest = (
        np.stack(column, axis=1) for column in zip(*points, strict=True)
    )
    return Curves(
        updates=np.arange(steps) * updates_per_step,
        value=worth,
        m2=m2,
        chi2=chi2,
        ess_fraction=ess,
        masked_fraction=masks,
        gradient_norm=largest,
    )
