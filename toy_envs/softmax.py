"""Linear softmax policies in numpy: features, log-probs, gradient, Adam; seeds side by side.

Leading axes (...) are policies of different seeds; each comes out as it would alone.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toy_envs.policy import State

Floats = NDArray[np.float64]
BETA1, BETA2, EPS = 0.9, 0.999, 1e-8
"""Adam (Kingma and Ba 2015)."""


@dataclass(frozen=True, kw_only=True)
class Features:
    """How states share what is learned: one weight each, and random ReLU features of all.

    Attributes:
        table: size of the one-hot feature of each state; 0 leaves the table out.
        random: number of random features; 0 makes the policy tabular.
    """

    table: float = 1.0
    random: int = 128

    def of(self, inputs: Floats, rng: np.random.Generator) -> Floats:
        """Draw the features of the states.

        Args:
            inputs: (S, n) what is known of each state.
            rng: draws the directions of the random features, standard normal.

        Returns:
            (S, F): the table's columns, then max(0, directions . inputs) / sqrt(random).
        """
        parts = []
        if self.table:
            parts.append(self.table * np.eye(len(inputs)))
        if self.random:
            directions = rng.standard_normal((inputs.shape[1], self.random))
            parts.append(np.maximum(inputs @ directions, 0.0) / np.sqrt(self.random))
        if not parts:
            raise ValueError("features: table and random are both 0; a policy needs one of them")
        return np.concatenate(parts, axis=1)


def log_policy(features: Floats, weights: Floats) -> Floats:
    """Return log-probs (..., S, A) of every arm in every state; weights are (..., F, A)."""
    logits = features @ weights
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def weight_gradient(
    features: Floats,
    logp: Floats,
    state: NDArray[np.int64],
    arm: NDArray[np.int64],
    pull: Floats,
) -> Floats:
    """Return the sum over tokens of pull times the gradient of the token's log-prob.

    The gradient of log pi(a|s) in the logits of s is onehot(a) - pi(.|s).

    Args:
        features: (..., S, F).
        logp: (..., S, A).
        state: (..., n) state of each token.
        arm: (..., n) token.
        pull: (..., n) how strongly each token's log-prob is pulled up.

    Returns:
        (..., F, A).
    """
    *seeds, states, arms = logp.shape
    many = int(np.prod(seeds))
    place = np.arange(many)[:, None] * states + state.reshape(many, -1)
    cell = (place * arms + arm.reshape(many, -1)).ravel()
    table = np.bincount(cell, pull.ravel(), many * states * arms).reshape(logp.shape)
    table -= table.sum(axis=-1, keepdims=True) * np.exp(logp)
    return np.asarray(np.swapaxes(features, -1, -2) @ table)


class Adam:
    """Adam, upwards: it adds the step to the weights.

    Args:
        weights: (..., F, A); changed in place.
        eps: added to the root of the second moment.
    """

    def __init__(self, weights: Floats, eps: float = EPS) -> None:
        """Start with zero moments."""
        self.weights, self.eps, self.steps = weights, eps, 0
        self.mean, self.square = np.zeros_like(weights), np.zeros_like(weights)

    def step(self, gradient: Floats, learning_rate: float, clip: float = np.inf) -> Floats:
        """Take one step along the gradient.

        Args:
            gradient: (..., F, A).
            learning_rate: size of the step.
            clip: largest Euclidean norm of a seed's gradient; a longer one is scaled down.

        Returns:
            Norm (...) of each seed's gradient before clipping.
        """
        norm = np.sqrt((gradient * gradient).sum(axis=(-2, -1)))
        scale = clip / np.maximum(norm, clip) if np.isfinite(clip) else np.ones_like(norm)
        gradient = gradient * scale[..., None, None]
        self.steps += 1
        self.mean += (1 - BETA1) * (gradient - self.mean)
        self.square += (1 - BETA2) * (gradient * gradient - self.square)
        root = np.sqrt(self.square / (1 - BETA2**self.steps)) + self.eps
        self.weights += learning_rate / (1 - BETA1**self.steps) * self.mean / root
        return np.asarray(norm)

    def state(self) -> State:
        """Weights, moments and the number of steps."""
        arrays = {"weights": self.weights, "mean": self.mean, "square": self.square}
        return {**{k: v.copy() for k, v in arrays.items()}, "steps": np.array(self.steps)}

    def load(self, state: State) -> None:
        """Go on from `state()`."""
        self.weights[...] = state["weights"]
        self.mean[...], self.square[...] = state["mean"], state["square"]
        self.steps = int(state["steps"])
