"""Everything that a plan says of a recipe: memory, queue, hours, what staleness buys."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean

from full_scale.plan.assumptions import Assumptions
from full_scale.plan.memory import Memory, checkpoint_disk_bytes, memory, offloaded_bytes
from full_scale.plan.queue import Queue, queue
from full_scale.plan.schedule import Timeline, asynchronous, one_step_off, synchronous
from full_scale.plan.workload import Workload, workload
from full_scale.recipes import Recipe

WARM_UP, STEPS = 2, 4
"""Simulated steps that are left out, and those that are averaged."""
AHEAD = (0.0, 1.0, 4.0)
"""Batches that asynchronous sampling may be ahead."""


@dataclass(frozen=True)
class Hours:
    """Time of a run as it is launched: all GPUs sample and train in turns.

    Attributes:
        mean: hours: steps, filling the stale queue, evaluations, checkpoints.
        low: with responses half as long.
        high: with responses twice as long, or at the limit.
        step_seconds: of a step.
        sampling_seconds: of a batch, in it.
        training_seconds: on a batch, in it.
        response_mean: tokens.
    """

    mean: float
    low: float
    high: float
    step_seconds: float
    sampling_seconds: float
    training_seconds: float
    response_mean: float


@dataclass(frozen=True)
class Schedule:
    """A way to run the recipe on its GPUs.

    Attributes:
        name: as shown.
        in_turns: whether all GPUs sample, then all train.
        sampling: GPUs that sample.
        training: GPUs that train.
        step_seconds: mean.
        busy_fraction: share of the time in which engines sample.
        staleness: mean age of responses when they are trained on, updates.
        oldest: largest age.
    """

    name: str
    in_turns: bool
    sampling: int
    training: int
    step_seconds: float
    busy_fraction: float
    staleness: float
    oldest: int


@dataclass(frozen=True)
class Plan:
    """A plan of a recipe.

    Attributes:
        recipe: what is planned.
        assumed: under which assumptions.
        memory: of a GPU.
        queue: the stale queue.
        host_bytes: memory of all nodes for offloaded states and the queue.
        checkpoint_bytes: disk of one checkpoint, with the queue.
        hours: of the run.
        cut_fraction: share of responses that reach the limit.
        schedules: the recipe's own first.
    """

    recipe: Recipe
    assumed: Assumptions
    memory: Memory
    queue: Queue
    host_bytes: float
    checkpoint_bytes: float
    hours: Hours
    cut_fraction: float
    schedules: list[Schedule]


def plan(recipe: Recipe, assumed: Assumptions | None = None) -> Plan:
    """Plan a recipe.

    Raises:
        UnusableError: assumptions that contradict the recipe.
    """
    assumed = assumed or Assumptions()
    work = workload(recipe, assumed)
    waiting = queue(recipe, assumed.prompt_mean, work.lengths.moment(1))
    return Plan(
        recipe=recipe,
        assumed=assumed,
        memory=memory(recipe, assumed),
        queue=waiting,
        host_bytes=offloaded_bytes(recipe) + waiting.bytes,
        checkpoint_bytes=_checkpoint_bytes(recipe, waiting),
        hours=hours_of(recipe, assumed),
        cut_fraction=work.lengths.cut(),
        schedules=schedules(recipe, work),
    )


def hours_of(recipe: Recipe, assumed: Assumptions) -> Hours:
    """Time of a run, and how it moves with the length of responses."""
    mean = assumed.lengths_of(recipe)
    longer = min(2 * mean, float(recipe.max_response_length))
    line = _in_turns(workload(recipe, assumed), recipe.gpus)
    return Hours(
        mean=_run_hours(recipe, assumed),
        low=_run_hours(recipe, replace(assumed, response_mean=mean / 2)),
        high=_run_hours(recipe, replace(assumed, response_mean=longer)),
        step_seconds=fmean(line.steps),
        sampling_seconds=fmean(line.sampling),
        training_seconds=fmean(line.training),
        response_mean=mean,
    )


def _run_hours(recipe: Recipe, assumed: Assumptions) -> float:
    work = workload(recipe, assumed)
    line = _in_turns(work, recipe.gpus)
    sampling = fmean(line.sampling)
    seconds = recipe.steps * fmean(line.steps) + recipe.staleness_steps * sampling
    waiting = queue(recipe, assumed.prompt_mean, work.lengths.moment(1))
    once = _checkpoint_bytes(recipe, waiting) / (assumed.disk_gb * 1e9)
    once += sampling * assumed.evaluated / work.rows
    return (seconds + recipe.steps / recipe.every * once) / 3600


def _checkpoint_bytes(recipe: Recipe, waiting: Queue) -> float:
    return checkpoint_disk_bytes(recipe.shape) + (waiting.bytes if recipe.staleness else 0.0)


@lru_cache(maxsize=256)
def _in_turns(work: Workload, gpus: int) -> Timeline:
    """Recipes that differ in staleness or budget only have the same step."""
    return synchronous(work, gpus, WARM_UP + STEPS)


def schedules(recipe: Recipe, work: Workload) -> list[Schedule]:
    """The recipe's own schedule, then others on as many GPUs, each with its fastest split."""
    steps, gpus = WARM_UP + STEPS, recipe.gpus
    turns = _described("in turns", gpus, gpus, _in_turns(work, gpus))
    own = replace(turns, in_turns=True, staleness=float(recipe.staleness), oldest=recipe.staleness)
    stride = max(recipe.tensor_parallel, gpus // 8)
    splits = range(stride, gpus, stride)
    if not splits:
        return [own]
    off = _fastest(
        _described("one step off", n, gpus - n, one_step_off(work, n, gpus - n, steps))
        for n in splits
    )
    near = [n for n in splits if abs(n - off.sampling) <= stride]
    others = [
        _fastest(
            _described(
                f"asynchronous, {ahead:g} ahead",
                n,
                gpus - n,
                asynchronous(work, n, gpus - n, steps, ahead),
            )
            for n in near
        )
        for ahead in AHEAD
    ]
    return [own, off, *others]


def _fastest(found: Iterable[Schedule]) -> Schedule:
    return min(found, key=lambda schedule: schedule.step_seconds)


def _described(name: str, sampling: int, training: int, line: Timeline) -> Schedule:
    return Schedule(
        name=name,
        in_turns=False,
        sampling=sampling,
        training=training,
        step_seconds=fmean(line.steps[WARM_UP:]),
        busy_fraction=line.busy_fraction,
        staleness=fmean(line.staleness[WARM_UP:]),
        oldest=line.oldest,
    )
