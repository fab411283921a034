"""Where stale rollouts come from: the paper's FIFO."""

from collections import deque
from typing import Protocol

import numpy as np

from toy_envs.policy import Rollout, State


class Queue(Protocol):
    """Rollouts wait here between sampling and training."""

    @property
    def first(self) -> int:
        """How many rollouts of the start policy it must hold before training begins."""
        ...

    def push(self, rollout: Rollout) -> None:
        """Take a fresh rollout in."""
        ...

    def pop(self, rng: np.random.Generator) -> Rollout:
        """Give the rollout to train on; a queue that chooses at random draws from `rng`."""
        ...

    def state(self) -> State:
        """Everything that is waiting."""
        ...

    def load(self, state: State) -> None:
        """Go on from `state()`."""
        ...


class StaleQueue:
    """First in, first out, `staleness` updates deep (M2PO, arXiv 2510.01161: Stale-k).

    A step pushes one rollout, pops the oldest and takes `updates_per_step` updates on it. Token
    lags are staleness to staleness + updates_per_step - 1, once the queue has turned over: for 256
    and 4, 256 to 259. Before, rollouts of the start policy are used.

    Args:
        staleness: updates between sampling and the first update on a rollout, at least 0.
        updates_per_step: updates on one rollout.

    Raises:
        ValueError: staleness is negative or not a multiple of the updates a step.
    """

    def __init__(self, staleness: int, updates_per_step: int) -> None:
        """Start empty."""
        if staleness < 0 or staleness % updates_per_step:
            below = max(0, staleness) // updates_per_step * updates_per_step
            raise ValueError(
                f"staleness {staleness} is not a multiple of the {updates_per_step} updates a step;"
                f" take {below} or {below + updates_per_step}"
            )
        self._depth = staleness // updates_per_step
        self._waiting: deque[Rollout] = deque()

    @property
    def first(self) -> int:
        """How many rollouts of the start policy it must hold before training begins."""
        return self._depth

    def push(self, rollout: Rollout) -> None:
        """Take a fresh rollout in."""
        self._waiting.append(rollout)

    def pop(self, rng: np.random.Generator) -> Rollout:
        """Give the oldest rollout; nothing is drawn from `rng`."""
        return self._waiting.popleft()

    def state(self) -> State:
        """Everything that is waiting, oldest first; the fields of all rollouts stacked."""
        if not self._waiting:
            return {}
        rollouts = [rollout.arrays() for rollout in self._waiting]
        return {name: np.stack([arrays[name] for arrays in rollouts]) for name in rollouts[0]}

    def load(self, state: State) -> None:
        """Go on from `state()`."""
        count = len(state["reward"]) if state else 0
        self._waiting = deque(
            Rollout(**{name: stacked[i] for name, stacked in state.items()}) for i in range(count)
        )
