"""A recipe under assumptions, as what the schedules have to do."""

from dataclasses import dataclass

from full_scale.plan.assumptions import Assumptions
from full_scale.plan.cost import Decoding, Training
from full_scale.plan.lengths import Lengths
from full_scale.plan.memory import CACHE, memory
from full_scale.recipes import Recipe


@dataclass(frozen=True)
class Workload:
    """What a schedule has to do in each step.

    Attributes:
        groups: prompts of a batch.
        samples: responses of a prompt.
        updates: optimizer updates on a batch.
        prompt: tokens of a prompt.
        lengths: of responses.
        decoding: of an engine.
        engine_gpus: GPUs of an engine.
        training: on a batch.
        switch_seconds: between sampling and training on the same GPUs, a step.
        sync_seconds: to bring weights to GPUs of their own.
        other_seconds: a step's rest, in which nothing trains.
        seed: of the lengths.
    """

    groups: int
    samples: int
    updates: int
    prompt: float
    lengths: Lengths
    decoding: Decoding
    engine_gpus: int
    training: Training
    switch_seconds: float
    sync_seconds: float
    other_seconds: float
    seed: int

    @property
    def rows(self) -> int:
        """Responses of a batch."""
        return self.groups * self.samples


def workload(recipe: Recipe, assumed: Assumptions) -> Workload:
    """Work of a step of a recipe."""
    return Workload(
        groups=recipe.train_batch_size,
        samples=recipe.samples,
        updates=recipe.updates_per_step,
        prompt=assumed.prompt_mean,
        lengths=Lengths.with_mean(
            assumed.lengths_of(recipe), assumed.response_sigma, recipe.max_response_length
        ),
        decoding=Decoding.of(recipe, assumed, memory(recipe, assumed).sampling[CACHE]),
        engine_gpus=recipe.tensor_parallel,
        training=Training.of(recipe, assumed),
        switch_seconds=assumed.switch_seconds,
        sync_seconds=assumed.sync_seconds,
        other_seconds=assumed.other_seconds,
        seed=assumed.seed,
    )
