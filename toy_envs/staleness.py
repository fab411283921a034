"""Where stale rollouts come from: the paper's FIFO, and actors that run on their own.

`toy_envs.mismatch` has the other reason why a sampler is not the trainer.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

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
        self._depth = _whole_steps("staleness", staleness, updates_per_step)
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


class MixedQueue:
    """Actors that finish when they finish: each step trains on answers of many ages.

    The groups of answers to one prompt wait in a pool; a step adds those of one rollout and takes
    as many at random. Every group is trained on once. Whatever the choice, the mean lag at the
    first update of a step is exactly `staleness` in the long run (Little's law); single lags spread
    about geometrically, up to `limit`. With `limit = staleness` this is StaleQueue.

    Args:
        staleness: mean updates between sampling and the first update on a group, at least 0.
        updates_per_step: updates on one rollout.
        samples: answers a prompt, which stay together.
        limit: largest such number; a group that reaches it goes first. None is no limit.

    Raises:
        ValueError: staleness or limit is negative or not a multiple of the updates a step, or the
            limit is below the mean.
    """

    def __init__(
        self, staleness: int, updates_per_step: int, samples: int, limit: int | None = None
    ) -> None:
        """Start empty."""
        self._depth = _whole_steps("staleness", staleness, updates_per_step)
        self._limit: float = np.inf
        if limit is not None:
            self._limit = _whole_steps("limit", limit, updates_per_step)
            if limit < staleness:
                raise ValueError(
                    f"limit {limit} is below the mean staleness {staleness};"
                    f" take at least {staleness}"
                )
        self._samples, self._groups, self._clock = samples, 0, 0
        self._arrival = np.empty(0, np.int64)
        self._pool: Rollout | None = None

    @property
    def first(self) -> int:
        """How many rollouts of the start policy it must hold before training begins."""
        return self._depth

    def push(self, rollout: Rollout) -> None:
        """Take the groups of a fresh rollout in."""
        self._groups = rollout.n_rows // self._samples
        self._pool = rollout if self._pool is None else joined([self._pool, rollout])
        self._arrival = np.append(self._arrival, np.full(self._groups, self._clock))
        self._clock += 1

    def pop(self, rng: np.random.Generator) -> Rollout:
        """Give as many groups as one rollout has, the oldest first."""
        if self._pool is None:
            raise ValueError("the queue is empty; push a rollout before the first pop")
        due = self._clock - 1 - self._arrival >= self._limit
        chosen = np.flatnonzero(due)
        others = rng.choice(np.flatnonzero(~due), self._groups - len(chosen), replace=False)
        taken = np.zeros(len(self._arrival), np.bool_)
        taken[chosen], taken[others] = True, True
        rows = np.repeat(taken, self._samples)
        given, self._pool = chosen_rows(self._pool, rows), chosen_rows(self._pool, ~rows)
        self._arrival = self._arrival[~taken]
        return given

    def state(self) -> State:
        """Everything that is waiting, and since when."""
        rollout = {} if self._pool is None else self._pool.arrays()
        counters = np.array([self._groups, self._clock])
        return {**rollout, "arrival": self._arrival, "counters": counters}

    def load(self, state: State) -> None:
        """Go on from `state()`."""
        rollout = dict(state)
        self._arrival = rollout.pop("arrival")
        self._groups, self._clock = (int(n) for n in rollout.pop("counters"))
        self._pool = Rollout(**rollout) if rollout else None


def queued(text: str, staleness: int, updates_per_step: int, samples: int) -> Queue:
    """Make the queue that is called `fifo`, `mixed`, or `mixed=512` for lags of at most 512.

    Args:
        text: its name.
        staleness: updates between sampling and training; of a mixed queue the mean.
        updates_per_step: updates on one rollout.
        samples: answers a prompt, which stay together.

    Raises:
        ValueError: an unknown name, or a number of updates that is not a multiple of the updates a
            step.
    """
    name, equals, limit = text.partition("=")
    if text == "fifo":
        return StaleQueue(staleness, updates_per_step)
    if name != "mixed" or (equals and not limit.isdecimal()):
        raise ValueError(f"queue {text!r} is not fifo, mixed or mixed=LIMIT; for example mixed=512")
    return MixedQueue(staleness, updates_per_step, samples, int(limit) if equals else None)


def joined(rollouts: Sequence[Rollout]) -> Rollout:
    """Put the answers of several rollouts one after the other."""
    arrays = [rollout.arrays() for rollout in rollouts]
    return Rollout(**{name: np.concatenate([a[name] for a in arrays]) for name in arrays[0]})


def chosen_rows(rollout: Rollout, rows: NDArray[Any]) -> Rollout:
    """Answers by their indices, or by a boolean mask."""
    return Rollout(**{name: array[rows] for name, array in rollout.arrays().items()})


def _whole_steps(name: str, updates: int, updates_per_step: int) -> int:
    """Updates -> steps."""
    if updates < 0 or updates % updates_per_step:
        below = max(0, updates) // updates_per_step * updates_per_step
        near = f"{below} or {below + updates_per_step}" if updates > 0 else "0"
        raise ValueError(
            f"{name} {updates} is not a multiple of the {updates_per_step} updates a step,"
            f" from 0 on; take {near}"
        )
    return updates // updates_per_step
