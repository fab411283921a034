"""Recipes: what is trained, how long, how fast; and the arms that figures compare."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from toy_envs.policy import Engine, Policy

if TYPE_CHECKING:
    from toy_envs.tasks import Task

ARMS = ("ppo_s0", "ppo_s256", "is_s256", "m2po_s256")
"""The four arms of the paper's figure 1, as `<objective>_s<staleness in updates>`."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A task, a policy and the numbers of its training.

    Attributes:
        name: how the command calls it.
        summary: one line.
        make: (recipe, seed, cache, engine) -> the start policy; heavy imports happen inside.
        prompts: prompts a rollout.
        samples: answers a prompt.
        updates_per_step: mini-batches a rollout is split into.
        steps: rollouts trained on.
        learning_rate: of Adam, constant.
    """

    name: str
    summary: str
    make: Callable[["Recipe", int, Path | None, Engine | None], Policy]
    prompts: int = 32
    samples: int = 8
    updates_per_step: int = 4
    steps: int = 140
    learning_rate: float = 2e-4


def _running_sum(recipe: Recipe, seed: int, cache: Path | None, engine: Engine | None) -> Policy:
    from toy_envs.tasks import RunningSum

    return _small_lm(RunningSum(), recipe, seed, cache, engine)


def _small_lm(
    task: "Task", recipe: Recipe, seed: int, cache: Path | None, engine: Engine | None
) -> Policy:
    import torch

    from toy_envs.lm_policy import LMPolicy, WarmStart, warm_model
    from toy_envs.small_lm import SmallLMConfig

    # Sums of floats depend on how many threads share them; runs must not depend on the machine.
    torch.set_num_threads(1)
    context = task.prompt_length + task.answer_length
    config = SmallLMConfig(vocabulary=len(task.vocabulary), context=context)
    model = warm_model(task, config, WarmStart(), seed, cache)
    return LMPolicy(task, model, prompts=recipe.prompts, samples=recipe.samples, engine=engine)


RECIPES = MappingProxyType(
    {
        recipe.name: recipe
        for recipe in (
            Recipe(
                name="running-sum",
                summary="a small transformer writes running sums modulo 10 behind five digits",
                make=_running_sum,
            ),
        )
    }
)
"""Name -> recipe."""
