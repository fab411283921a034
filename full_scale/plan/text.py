"""A plan as text for people, as a dictionary for programs, as a header for scripts."""

from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Any

from full_scale.plan.assumptions import Assumptions
from full_scale.plan.memory import ALTERNATING
from full_scale.plan.plan import Plan, hours_of
from full_scale.recipes import Recipe

SCHEMA = "m2po-lab/plan/1"
GB = 1e9
WIDTH = 92


def summary(recipe: Recipe) -> str:
    """Hours of a run under the default assumptions, in one line."""
    hours = hours_of(recipe, Assumptions())
    return (
        f"Plan: {_hours(hours.mean)} hours for {recipe.steps} steps, {_hours(hours.low)} to "
        f"{_hours(hours.high)} if responses are half or twice as long as the assumed "
        f"{hours.response_mean:.0f} tokens; a step samples for {hours.sampling_seconds:.0f} s and "
        f"trains for {hours.training_seconds:.0f} s. Estimated, not measured: see m2po-lab plan "
        f"{recipe.name}."
    )


def _hours(hours: float) -> str:
    return f"{hours:.0f}" if hours >= 10 else f"{hours:.1f}"


def text(plan: Plan) -> str:
    """A plan as a page for a terminal."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    recipe, hours = plan.recipe, plan.hours
    yield recipe.summary
    yield ""
    yield f"{'memory of a GPU, GB':<28}{'sampling':>10}{'training':>10}"
    for part in dict.fromkeys((*plan.memory.sampling, *plan.memory.training)):
        name = f"{part} *" if part in ALTERNATING else part
        cells = (each.get(part) for each in (plan.memory.sampling, plan.memory.training))
        yield f"  {name:<26}" + "".join(f"{_gb(cell):>10}" for cell in cells)
    peaks = plan.memory.sampling_peak, plan.memory.training_peak
    yield f"  {'peak':<26}" + "".join(f"{_gb(peak):>10}" for peak in peaks)
    fit = "fits" if plan.memory.fits else "DOES NOT FIT"
    yield f"  of {plan.memory.total / GB:.1f}: {fit}; * one at a time"
    yield ""
    queue = plan.queue
    yield (
        f"stale queue    {queue.batches} batches, {queue.rows:,} responses, "
        f"{queue.bytes / GB:.1f} GB in memory"
        + (" and in each checkpoint" if recipe.staleness else "")
    )
    yield f"host memory    {plan.host_bytes / GB:.0f} GB on all nodes: offloaded states, queue"
    yield f"checkpoint     {plan.checkpoint_bytes / GB:.0f} GB of disk"
    yield ""
    yield (
        f"step           {hours.step_seconds:.0f} s: sampling {hours.sampling_seconds:.0f}, "
        f"training {hours.training_seconds:.0f}, between them "
        f"{plan.assumed.switch_seconds + plan.assumed.other_seconds:.0f}"
    )
    yield (
        f"run            {_hours(hours.mean)} h for {recipe.steps} steps; {_hours(hours.low)} to "
        f"{_hours(hours.high)} if responses are half or twice as long"
    )
    yield (
        f"responses      {hours.response_mean:.0f} tokens on average, {plan.cut_fraction:.1%} "
        f"reach the limit of {recipe.max_response_length}"
    )
    yield ""
    yield from _schedules(plan)
    yield ""
    yield "assumed (NAME=VALUE changes one; what each means: docs/howto/plan.md)"
    line = "  "
    for each in fields(plan.assumed):
        word = f"{each.name}={getattr(plan.assumed, each.name):g} "
        if len(line) + len(word) > WIDTH:
            yield line.rstrip()
            line = "  "
        line += word
    yield line.rstrip()


def _schedules(plan: Plan) -> Iterator[str]:
    yield f"{'what staleness buys':<24}{'GPUs':>10}{'s a step':>10}{'speed':>8}{'age, updates':>16}"
    base = plan.schedules[0].step_seconds
    for each in plan.schedules:
        gpus = str(each.sampling) if each.in_turns else f"{each.sampling}+{each.training}"
        age = f"{each.staleness:.1f}, at most {each.oldest}"
        speed = f"{base / each.step_seconds:.2f} x"
        yield f"  {each.name:<22}{gpus:>10}{each.step_seconds:>10.1f}{speed:>8}{age:>20}"
    if plan.recipe.staleness:
        yield "  In turns, old data costs no time and buys none: it is there to be studied."


def _gb(value: float | None) -> str:
    return "" if value is None else f"{value / GB:.1f}"


def document(plan: Plan) -> dict[str, Any]:
    """A plan as JSON holds it: bytes and seconds, with the assumptions."""
    memory = plan.memory
    return {
        "schema": SCHEMA,
        "recipe": plan.recipe.name,
        "assumptions": asdict(plan.assumed),
        "memory": {
            "sampling": memory.sampling,
            "training": memory.training,
            "sampling_peak": memory.sampling_peak,
            "training_peak": memory.training_peak,
            "total": memory.total,
            "fits": memory.fits,
        },
        "queue": asdict(plan.queue),
        "host_bytes": plan.host_bytes,
        "checkpoint_bytes": plan.checkpoint_bytes,
        "hours": asdict(plan.hours),
        "cut_fraction": plan.cut_fraction,
        "schedules": [asdict(each) for each in plan.schedules],
    }
