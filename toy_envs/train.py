"""The training loop: sample, wait in the queue, train on what is stale, write it down."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from m2po_lab.core.objectives import Objective, objective
from toy_envs.journal import Journal
from toy_envs.measure import Metrics, step_metrics
from toy_envs.mismatch import mismatched
from toy_envs.policy import Policy, Rollout, group_advantage
from toy_envs.recipes import RECIPES, Recipe, Run
from toy_envs.staleness import queued

UNSCALED = ("dr_grpo", "minirl")
"""Objectives whose papers do not divide the advantage by the standard deviation of the group."""
PROXIMAL_IF_GIVEN = ("m2po_areal",)
"""Objectives that can do without proximal log-probs and are meant to have them."""


def train(
    run: Run,
    out: Path,
    *,
    cache: Path | None = None,
    checkpoint_every: int = 20,
    progress: Callable[[int, Metrics], None] | None = None,
) -> list[Metrics]:
    """Train one policy and leave a native log, metrics and a checkpoint.

    Called again after a kill it goes on from the checkpoint and leaves the same bytes as an
    unbroken run; called on a finished run it returns the metrics.

    Args:
        run: the settings.
        out: directory of the run.
        cache: where warm starts are kept for other runs with the same seed.
        checkpoint_every: steps between checkpoints; the bytes of the log do not depend on it.
        progress: called after every step with its number and metrics.

    Returns:
        Metrics of each step; `reward` is that of fresh answers at the start of the step.

    Raises:
        ValueError: an unknown recipe, objective, queue or mismatch, a bad parameter, or a staleness
            that is not a multiple of the updates a step.
    """
    recipe, goal = settings_of(run)
    queue = queued(run.queue, run.staleness, recipe.updates_per_step, recipe.samples)
    journal = Journal(out, run, recipe.samples)
    policy = recipe.make(recipe, run.seed, cache, mismatched(run.mismatch))
    steps = recipe.steps if run.steps is None else run.steps
    peak_rate = recipe.learning_rate if run.learning_rate is None else run.learning_rate
    scaled = run.objective not in UNSCALED

    done = journal.resume(policy, queue)
    if done == 0:
        for i in range(queue.first):
            queue.push(sampled(policy, recipe, generator(run.seed, "start", i), 0, scaled))

    for step in range(done, steps):
        fresh = sampled(
            policy,
            recipe,
            generator(run.seed, "rollout", step),
            step * recipe.updates_per_step,
            scaled,
        )
        queue.push(fresh)
        stale = queue.pop(generator(run.seed, "queue", step))
        if "proximal_logp" in goal.needs or goal.name in PROXIMAL_IF_GIVEN:
            stale = stale.replace(proximal_logp=policy.logp(stale))

        updates = []
        width = stale.n_rows // recipe.updates_per_step
        for i in range(recipe.updates_per_step):
            left = 1 - (step + i / recipe.updates_per_step) / steps if run.decay else 1.0
            part = stale.rows(i * width, (i + 1) * width)
            updates.append(policy.update(part, goal, peak_rate * left))

        metrics = step_metrics(fresh, stale, updates)
        journal.step(step, stale, updates, metrics)
        if (step + 1) % checkpoint_every == 0 or step + 1 == steps:
            journal.checkpoint(step + 1, policy, queue)
        if progress is not None:
            progress(step, metrics)
    return journal.metrics


def settings_of(run: Run) -> tuple[Recipe, Objective]:
    """Look up the recipe and make the objective; check these and everything else of the run.

    Raises:
        ValueError: see `train`.
    """
    if run.recipe not in RECIPES:
        raise ValueError(f"unknown recipe {run.recipe!r}; one of {', '.join(RECIPES)}")
    recipe = RECIPES[run.recipe]
    if run.steps is not None and run.steps < 1:
        raise ValueError(f"steps is {run.steps}; train on at least 1 rollout")
    if run.learning_rate is not None and not 0 < run.learning_rate < math.inf:
        raise ValueError(f"learning_rate is {run.learning_rate}; it must be above 0 and finite")
    queued(run.queue, run.staleness, recipe.updates_per_step, recipe.samples)
    mismatched(run.mismatch)
    return recipe, objective(run.objective, **run.params)


def sampled(
    policy: Policy, recipe: Recipe, rng: np.random.Generator, version: int, scaled: bool
) -> Rollout:
    """Sample a rollout, compare the answers of each group and note who sampled it."""
    rollout = policy.rollout(rng)
    return rollout.replace(
        advantage=group_advantage(rollout.reward, recipe.samples, scaled=scaled),
        version=np.full(rollout.tokens.shape, version, np.int32),
    )


def generator(seed: int, use: str, index: int) -> np.random.Generator:
    """One independent generator for each use and step, so that none has to be saved."""
    return np.random.default_rng([seed, ("start", "rollout", "queue").index(use), index])
