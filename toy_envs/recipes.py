"""Recipes: what is trained, how long, how fast; and the arms that figures compare."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from toy_envs.policy import Engine, Policy

if TYPE_CHECKING:
    from toy_envs.chain import Bandit
    from toy_envs.softmax import Features
    from toy_envs.tasks import Task


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


@dataclass(frozen=True, kw_only=True)
class Run:
    """Settings of one run; what is None is taken from the recipe.

    Attributes:
        recipe: name in RECIPES.
        objective: name in the core's OBJECTIVES.
        staleness: updates between sampling and training.
        seed: of weights, prompts and samples.
        steps: rollouts trained on.
        learning_rate: at the first update.
        decay: the learning rate falls linearly to 0 over the run.
        params: parameters of the objective, such as its budget.
        queue: where rollouts wait, as `toy_envs.staleness.queued` reads it.
        mismatch: how the sampler differs, as `toy_envs.mismatch.mismatched` reads it.
    """

    recipe: str
    objective: str = "m2po"
    staleness: int = 256
    seed: int = 0
    steps: int | None = None
    learning_rate: float | None = None
    decay: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)
    queue: str = "fifo"
    mismatch: str = ""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One curve of a figure: an objective on data of one staleness, whatever the recipe and seed.

    Attributes:
        objective: name in the core's OBJECTIVES.
        staleness: updates between sampling and training.
        params: parameters of the objective.
        steps: rollouts trained on; None as many as the recipe.
        rate: the learning rate as a multiple of the recipe's.
        decay: the learning rate falls linearly to 0.
        queue: as in `Run`.
        mismatch: as in `Run`.
    """

    objective: str
    staleness: int
    params: Mapping[str, float] = field(default_factory=dict)
    steps: int | None = None
    rate: float = 1.0
    decay: bool = False
    queue: str = "fifo"
    mismatch: str = ""

    @property
    def name(self) -> str:
        """`<objective>_s<staleness>`, and what differs from the recipe behind it."""
        parts = [f"{self.objective}_s{self.staleness}"]
        parts += [f"{name}{value:g}" for name, value in self.params.items()]
        parts += [] if self.steps is None else [f"steps{self.steps}"]
        parts += [] if self.rate == 1 else [f"rate{self.rate:g}"]
        parts += ["decay"] * self.decay
        parts += [] if self.queue == "fifo" else [self.queue]
        parts += [part.strip() for part in self.mismatch.split(",") if part.strip()]
        return "_".join(part.replace("=", "") for part in parts)

    def run(self, recipe: str, seed: int) -> Run:
        """Settings of this arm for a recipe and a seed."""
        settings = {f.name: getattr(self, f.name) for f in fields(self)}
        rate = settings.pop("rate")
        learning_rate = None if rate == 1 else rate * RECIPES[recipe].learning_rate
        return Run(recipe=recipe, seed=seed, learning_rate=learning_rate, **settings)


def arm(text: str) -> Arm:
    """Read `<objective>_s<staleness>`, such as ppo_s256.

    Raises:
        ValueError: it is not of this form.
    """
    objective, _, staleness = text.rpartition("_s")
    if not (objective and staleness.isdecimal()):
        raise ValueError(
            f"arm {text!r} is not <objective>_s<staleness in updates>; for example m2po_s256"
        )
    return Arm(objective=objective, staleness=int(staleness))


def _chain(recipe: Recipe, seed: int, cache: Path | None, engine: Engine | None) -> Policy:
    from toy_envs.chain import Chain

    return _bandit(Chain(), recipe, seed, engine)


def _tabular(recipe: Recipe, seed: int, cache: Path | None, engine: Engine | None) -> Policy:
    from toy_envs.chain import Chain
    from toy_envs.softmax import Features

    return _bandit(Chain(), recipe, seed, engine, Features(random=0))


def _one_step(recipe: Recipe, seed: int, cache: Path | None, engine: Engine | None) -> Policy:
    from toy_envs.chain import ContextualBandit

    return _bandit(ContextualBandit(), recipe, seed, engine)


def _bandit(
    bandit: "Bandit",
    recipe: Recipe,
    seed: int,
    engine: Engine | None,
    features: "Features | None" = None,
) -> Policy:
    from toy_envs.bandit import BanditPolicy

    return BanditPolicy(
        bandit,
        seed,
        prompts=recipe.prompts,
        samples=recipe.samples,
        features=features,
        engine=engine,
    )


def _running_sum(recipe: Recipe, seed: int, cache: Path | None, engine: Engine | None) -> Policy:
    from toy_envs.tasks import RunningSum

    return _small_lm(RunningSum(), recipe, seed, cache, engine)


def _forks(recipe: Recipe, seed: int, cache: Path | None, engine: Engine | None) -> Policy:
    from toy_envs.tasks import Forks

    return _small_lm(Forks(), recipe, seed, cache, engine)


def _fractions(recipe: Recipe, seed: int, cache: Path | None, engine: Engine | None) -> Policy:
    from toy_envs.fraction_sums import FractionSums

    return _small_lm(FractionSums(), recipe, seed, cache, engine, warm_steps=2000)


def _small_lm(
    task: "Task",
    recipe: Recipe,
    seed: int,
    cache: Path | None,
    engine: Engine | None,
    warm_steps: int = 600,
) -> Policy:
    import torch

    from toy_envs.lm_policy import LMPolicy, WarmStart, warm_model
    from toy_envs.small_lm import SmallLMConfig

    # Sums of floats depend on how many threads share them; runs must not depend on the machine.
    torch.set_num_threads(1)
    context = task.prompt_length + task.answer_length
    config = SmallLMConfig(vocabulary=len(task.vocabulary), context=context)
    model = warm_model(task, config, WarmStart(steps=warm_steps), seed, cache)
    return LMPolicy(task, model, prompts=recipe.prompts, samples=recipe.samples, engine=engine)


RECIPES = MappingProxyType(
    {
        recipe.name: recipe
        for recipe in (
            Recipe(
                name="bandit",
                summary="running sums as a chain of bandits; numpy only, solved exactly",
                make=_chain,
                steps=160,
                learning_rate=0.06,
            ),
            Recipe(
                name="bandit-tabular",
                summary="the same chain without shared weights, which does not collapse",
                make=_tabular,
                steps=160,
                learning_rate=0.06,
            ),
            Recipe(
                name="bandit-one-step",
                summary="one token a prompt, with shared weights, which does not collapse",
                make=_one_step,
                steps=160,
                learning_rate=0.06,
            ),
            Recipe(
                name="running-sum",
                summary="a small transformer writes running sums modulo 10 behind five digits",
                make=_running_sum,
            ),
            Recipe(
                name="forks",
                summary="running sums between free choices and copies: entropies from 0 to log 16",
                make=_forks,
            ),
            Recipe(
                name="fractions",
                summary="sums of two fractions in \\boxed{}, checked by math-verify",
                make=_fractions,
            ),
        )
    }
)
"""Name -> recipe."""

ARMS = tuple(map(arm, ("ppo_s0", "ppo_s256", "is_s256", "m2po_s256")))
"""The four arms of the paper's first figure."""

LAGS = (0, 8, 32, 64, 128, 256)
SWEEPS = MappingProxyType(
    {
        "staleness": tuple(
            Arm(objective=name, staleness=lag) for name in ("ppo", "m2po", "is") for lag in LAGS
        ),
        "budget": tuple(
            Arm(objective="m2po", staleness=256, params={"budget": budget})
            for budget in (0.0, 0.0025, 0.01, 0.02, 0.04, 0.08, 0.16)
        ),
        "objectives": tuple(
            Arm(objective=name, staleness=256)
            for name in (
                *("ppo", "m2po", "is", "tis", "cispo", "gspo", "gmpo", "sapo", "dapo"),
                *("decoupled_ppo", "topr", "bapo", "minirl", "dppo_tv", "icepop"),
            )
        ),
        "variants": tuple(
            Arm(objective=name, staleness=256)
            for name in ("m2po", "m2po_released", "m2po_areal", "m2po_all_tokens")
        ),
        "horizon": tuple(
            Arm(objective=name, staleness=256, steps=280) for name in ("ppo", "is", "m2po", "gspo")
        ),
        "pace": (
            *(Arm(objective=name, staleness=256, decay=True) for name in ("ppo", "is", "m2po")),
            *(
                Arm(objective=name, staleness=256, rate=0.25, steps=280)
                for name in ("ppo", "is", "m2po")
            ),
        ),
        "mismatch": (
            *(
                Arm(objective="m2po", staleness=0, mismatch=mismatch)
                for mismatch in ("", "bf16", "noise=0.3", "temperature=1.2", "top-p=0.9")
            ),
            *(Arm(objective=name, staleness=256, queue="mixed") for name in ("ppo", "is", "m2po")),
        ),
    }
)
"""Name -> arms that are compared: what the paper shows, and the other side of it."""
