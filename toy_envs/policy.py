"""What the training loop needs of a policy, and the rollouts that travel between the two.

The loop of `toy_envs.train` drives any object with these methods: a transformer in torch, a table
in numpy. All arrays that cross are numpy arrays, so a policy without torch needs no torch.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import Objective

State = dict[str, NDArray[Any]]
"""Everything that must survive a kill, by name; written as one .npz file."""


def _same(array: NDArray[Any]) -> Any:
    return array


@dataclass(frozen=True, eq=False, kw_only=True)
class Rollout:
    """R answers of at most T tokens to prompts of P tokens, as they were sampled.

    The answers to one prompt stand one after the other, `samples` of them.

    Attributes:
        prompts: (R, P) int64 token ids.
        tokens: (R, T) int64 token ids; what lies behind the end of an answer means nothing.
        keep: (R, T) boolean, the tokens of the answers.
        behavior_logp: (R, T) float32, nats, of the sampled tokens as the sampler reports them.
        entropy: (R, T) float32, nats, of the distributions they were drawn from.
        reward: (R,) float64.
        advantage: (R,) float64; the loop fills it in from the rewards of the group.
        version: (R, T) int32, updates the sampling policy had behind it; the loop fills it in.
        proximal_logp: (R, T) float64 or None: under the trainer at the start of the step.
    """

    prompts: NDArray[np.int64]
    tokens: NDArray[np.int64]
    keep: NDArray[np.bool_]
    behavior_logp: NDArray[np.float32]
    entropy: NDArray[np.float32]
    reward: NDArray[np.float64]
    advantage: NDArray[np.float64]
    version: NDArray[np.int32]
    proximal_logp: NDArray[np.float64] | None = None

    @property
    def n_rows(self) -> int:
        """Answers R."""
        return len(self.reward)

    def replace(self, **changes: Any) -> "Rollout":
        """Copy with other values in some fields."""
        return replace(self, **changes)

    def rows(self, start: int, stop: int) -> "Rollout":
        """Answers start to stop - 1."""
        cut = {name: array[start:stop] for name, array in self.arrays().items()}
        return Rollout(**cut)

    def arrays(self) -> State:
        """Every field that is there, by name; `Rollout(**arrays)` is the way back."""
        return {f.name: a for f in fields(self) if (a := getattr(self, f.name)) is not None}

    def batch(
        self, current_logp: Any, convert: Callable[[NDArray[Any]], Any] = _same
    ) -> TokenBatch:
        """As the core reads it.

        Args:
            current_logp: (R, T) log-probs under the policy in training, with or without gradient.
            convert: makes an array of the library of `current_logp` from a numpy one.
        """
        columns = {
            name: convert(array)
            for name in (
                "behavior_logp",
                "proximal_logp",
                "advantage",
                "keep",
                "entropy",
                "version",
            )
            if (array := getattr(self, name)) is not None
        }
        return TokenBatch(current_logp=current_logp, **columns)


@dataclass(frozen=True, eq=False, kw_only=True)
class Update:
    """What one optimizer step saw.

    Attributes:
        current_logp: (R, T) log-probs before the step, nats.
        keep: (R, T) boolean, `objective.keep` of the mini-batch.
        gradient_norm: Euclidean norm before any clipping.
    """

    current_logp: NDArray[np.float64]
    keep: NDArray[np.bool_]
    gradient_norm: float


class Engine(Protocol):
    """A sampler that is not quite the trainer: other precision, noise, temperature, top-p."""

    def logits(self, logits: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Turn the trainer's logits (B, V) into those it samples from; -inf is never drawn."""
        ...


class Policy(Protocol):
    """A policy in training.

    Attributes:
        vocabulary: the text of each token id.
    """

    vocabulary: tuple[str, ...]

    def rollout(self, rng: np.random.Generator) -> Rollout:
        """Draw prompts, answer and score them; advantage and version are left 0.

        All randomness comes from `rng`: the same weights and the same state of it give the same
        bytes. The loop passes a fresh generator each time, so a policy need not save one.
        """
        ...

    def logp(self, rollout: Rollout) -> NDArray[np.float64]:
        """Log-probs (R, T) of the answers under the policy as it stands, nats."""
        ...

    def update(self, part: Rollout, objective: Objective, learning_rate: float) -> Update:
        """Take one optimizer step on a mini-batch."""
        ...

    def state(self) -> State:
        """Weights and optimizer state; arrays that later updates do not change."""
        ...

    def load(self, state: State) -> None:
        """Go on from `state()`."""
        ...


def draw(
    logits: NDArray[np.float64], rng: np.random.Generator, engine: Engine | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Draw one token from each row of logits (B, V), by inversion of the cumulative distribution.

    Args:
        logits: (B, V) of the trainer.
        rng: one uniform number a row is drawn from it, after what the engine draws.
        engine: what the sampler makes of the logits; None samples from them as they are.

    Returns:
        ids (B,), their log-probs and the entropies of the distributions, nats, both (B,).
    """
    seen = logits if engine is None else engine.logits(logits, rng)
    shifted = seen - seen.max(axis=1, keepdims=True)
    mass = np.exp(shifted)
    total = mass.sum(axis=1, keepdims=True)
    logp = shifted - np.log(total)
    cumulative = np.cumsum(mass, axis=1)
    # Below the last sum, never at it: a token without mass behind the end is not drawn.
    point = rng.random((len(seen), 1)) * cumulative[:, -1:]
    ids = (cumulative <= point).sum(axis=1)
    p = mass / total
    entropy = -np.where(p > 0, p * np.where(p > 0, logp, 0.0), 0.0).sum(axis=1)
    chosen = np.take_along_axis(logp, ids[:, None], axis=1)[:, 0]
    return ids, chosen.astype(np.float32), entropy.astype(np.float32)


def group_advantage(
    reward: NDArray[np.float64], samples: int, *, scaled: bool = True
) -> NDArray[np.float64]:
    """Compare each answer with the others to the same prompt: (R - mean) / std of its group.

    The standard deviation is that of a sample (n - 1), as in verl and TRL. A group whose rewards
    are all equal has advantage exactly 0: nothing can be learned from it.

    Args:
        reward: (R,), groups one after the other.
        samples: answers a prompt.
        scaled: False leaves the division out (Dr.GRPO, MiniRL).

    Returns:
        (R,).
    """
    groups = reward.reshape(-1, samples)
    centered: NDArray[np.float64] = groups - groups.mean(axis=1, keepdims=True)
    if not scaled:
        return centered.reshape(-1)
    spread = groups.std(axis=1, ddof=1, keepdims=True) if samples > 1 else np.zeros((1, 1))
    flat = groups.max(axis=1, keepdims=True) == groups.min(axis=1, keepdims=True)
    safe = np.where(flat, 1.0, spread)
    advantage: NDArray[np.float64] = np.where(flat, 0.0, centered / safe).reshape(-1)
    return advantage
