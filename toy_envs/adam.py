"""AdamW over all parameters of a model as one vector: few, large operations, plain state."""

import math

import numpy as np
import torch
from torch import Tensor, nn

from toy_envs.policy import State

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8
"""Decay rates of the moments and what keeps the step finite (Kingma and Ba 2015)."""


class Adam:
    """AdamW as `torch.optim.AdamW` computes it, on one flat vector.

    Weights and gradients of the model become views of two vectors, so clipping and the update are
    a handful of operations whatever the number of layers.

    Args:
        model: its parameters are re-pointed, values unchanged.
        weight_decay: decoupled decay (Loshchilov and Hutter 2019).
    """

    def __init__(self, model: nn.Module, weight_decay: float = 0.0) -> None:
        """Flatten the model."""
        parameters = list(model.parameters())
        self.weight_decay = weight_decay
        self.weights = torch.cat([p.detach().reshape(-1) for p in parameters])
        self.gradient = torch.zeros_like(self.weights)
        self.mean, self.square = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.steps = 0
        start = 0
        for p in parameters:
            stop = start + p.numel()
            p.data = self.weights[start:stop].view(p.shape)
            p.grad = self.gradient[start:stop].view(p.shape)
            start = stop

    def step(self, loss: Tensor, learning_rate: float, clip: float = math.inf) -> float:
        """Take one step down the loss.

        Args:
            loss: 0-d, of the model.
            learning_rate: size of the step.
            clip: largest Euclidean norm of the gradient; a longer one is scaled down to it.

        Returns:
            Euclidean norm of the gradient before clipping.
        """
        self.gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = float(self.gradient.norm())
        if norm > clip:
            self.gradient.mul_(clip / norm)
        self.steps += 1
        self.mean.lerp_(self.gradient, 1 - BETA1)
        self.square.mul_(BETA2).addcmul_(self.gradient, self.gradient, value=1 - BETA2)
        scale = self.square.sqrt().div_(math.sqrt(1 - BETA2**self.steps)).add_(EPS)
        self.weights.mul_(1 - learning_rate * self.weight_decay)
        self.weights.addcdiv_(self.mean, scale, value=-learning_rate / (1 - BETA1**self.steps))
        return norm

    def state(self) -> State:
        """Weights, moments and the number of steps."""
        arrays = {name: vector.numpy().copy() for name, vector in self._vectors().items()}
        return {**arrays, "steps": np.array(self.steps)}

    def load(self, state: State) -> None:
        """Go on from `state()`."""
        for name, vector in self._vectors().items():
            vector.copy_(torch.from_numpy(state[name]))
        self.steps = int(state["steps"])

    def _vectors(self) -> dict[str, Tensor]:
        return {"weights": self.weights, "mean": self.mean, "square": self.square}
