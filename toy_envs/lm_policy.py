"""The small transformer as a policy, and the supervised warm start it begins with."""

import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from m2po_lab.core.objectives import Objective
from toy_envs.adam import Adam
from toy_envs.files import load_arrays, save_arrays
from toy_envs.policy import Engine, Rollout, State, Update
from toy_envs.small_lm import SmallLM, SmallLMConfig
from toy_envs.tasks import Task


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """Supervised training on noisy demonstrations, so that reinforcement learning has a start.

    Attributes:
        steps: AdamW steps.
        batch: demonstrations a step.
        learning_rate: constant.
        weight_decay: of AdamW.
        least: accuracy below which a start is given up for another one; one seed in eight stays on
            the plateau where sums are guesses.
        attempts: starts that are tried; the last one is taken as it is.
    """

    steps: int = 600
    batch: int = 128
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    least: float = 0.02
    attempts: int = 4


def warm_model(
    task: Task, config: SmallLMConfig, warm: WarmStart, seed: int, cache: Path | None = None
) -> SmallLM:
    """Initialise and warm-start a model; the same arguments give the same weights.

    Args:
        task: what to learn.
        config: shape of the model.
        warm: how to train it.
        seed: of the initial weights and the demonstrations.
        cache: directory where finished warm starts lie; None trains anew.
    """
    torch.manual_seed(seed)
    model, rng = SmallLM(config), np.random.default_rng(seed)
    settings = {"config": asdict(config), "warm": asdict(warm), "seed": seed, "task": repr(task)}
    mark = zlib.crc32(json.dumps(settings, sort_keys=True).encode())
    place = None if cache is None else cache / f"{task.name}_seed{seed}_{mark:08x}.npz"
    if place is not None and place.exists():
        weights = load_arrays(place)
        model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
        return model
    imitate(model, task, warm, rng)
    for _ in range(warm.attempts - 1):
        if accuracy(model, task) >= warm.least:
            break
        model = SmallLM(config)
        imitate(model, task, warm, rng)
    if place is not None:
        weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
        save_arrays(place, weights)
    return model


def imitate(model: SmallLM, task: Task, warm: WarmStart, rng: np.random.Generator) -> None:
    """Train a model, in place, on demonstrations of the task's noisy teacher."""
    optimizer = Adam(model, warm.weight_decay)
    for _ in range(warm.steps):
        prompts = task.prompts(rng, warm.batch)
        answers = task.demonstrations(rng, prompts)
        logps, _ = model.logp(torch.from_numpy(prompts), torch.from_numpy(answers))
        keep = torch.from_numpy(task.keep(answers))
        optimizer.step(-(logps * keep).sum() / keep.sum(), warm.learning_rate)


def accuracy(model: SmallLM, task: Task, answers: int = 512) -> float:
    """Mean reward of sampled answers to fixed prompts."""
    rng = np.random.default_rng(0)
    prompts = task.prompts(rng, answers)
    tokens, _, _ = model.sample(torch.from_numpy(prompts), task.answer_length, rng)
    return float(task.reward(prompts, tokens).mean())


class LMPolicy:
    """A small transformer that answers a task's prompts and learns by AdamW.

    Args:
        task: gives prompts and rewards.
        model: the start policy; it is changed in place.
        prompts: prompts a rollout.
        samples: answers a prompt.
        gradient_clip: largest Euclidean norm of a gradient.
        engine: what the sampler makes of the trainer's logits.
    """

    def __init__(
        self,
        task: Task,
        model: SmallLM,
        *,
        prompts: int,
        samples: int,
        gradient_clip: float = 1.0,
        engine: Engine | None = None,
    ) -> None:
        """Make the optimizer."""
        self.task, self.model, self.engine = task, model, engine
        self.vocabulary = task.vocabulary
        self.prompts, self.samples, self.gradient_clip = prompts, samples, gradient_clip
        self.optimizer = Adam(model)

    def rollout(self, rng: np.random.Generator) -> Rollout:
        """Draw prompts, answer each `samples` times, score."""
        prompts = np.repeat(self.task.prompts(rng, self.prompts), self.samples, axis=0)
        tokens, logps, entropies = self.model.sample(
            torch.from_numpy(prompts), self.task.answer_length, rng, self.engine
        )
        return Rollout(
            prompts=prompts,
            tokens=tokens,
            keep=self.task.keep(tokens),
            behavior_logp=logps,
            entropy=entropies,
            reward=self.task.reward(prompts, tokens),
            advantage=np.zeros(len(tokens)),
            version=np.zeros(tokens.shape, np.int32),
        )

    @torch.no_grad()
    def logp(self, rollout: Rollout) -> NDArray[np.float64]:
        """Log-probs (R, T) under the policy as it stands."""
        return self._logp(rollout).double().numpy()

    def update(self, part: Rollout, objective: Objective, learning_rate: float) -> Update:
        """Take one AdamW step down the objective's loss."""
        current = self._logp(part)
        loss, _ = objective.loss(part.batch(current, torch.from_numpy))
        norm = self.optimizer.step(loss, learning_rate, self.gradient_clip)
        seen = current.detach().double().numpy()
        return Update(current_logp=seen, keep=objective.keep(part.batch(seen)), gradient_norm=norm)

    def state(self) -> State:
        """Weights, AdamW's moments and step count."""
        return self.optimizer.state()

    def load(self, state: State) -> None:
        """Go on from `state()`."""
        self.optimizer.load(state)

    def _logp(self, rollout: Rollout) -> torch.Tensor:
        logps: torch.Tensor = self.model.logp(
            torch.from_numpy(rollout.prompts), torch.from_numpy(rollout.tokens)
        )[0]
        return logps
