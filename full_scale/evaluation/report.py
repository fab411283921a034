"""An evaluation as text: a line a set with intervals, and its row of Table 1."""

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from full_scale.data.sets import EVALUATION
from full_scale.evaluation.paper import SOURCE, arm_of

WIDEST = 100
HEADER = f"{'':<10}{'problems':>9}{'samples':>9}   avg@k, 95 % interval    pass@k, 95 % interval   "
PAPER = f"{'paper':>7}{'ours - paper':>14}"


def report(evaluation: Mapping[str, Any]) -> str:
    """Write an evaluation for people; at most 100 columns.

    Args:
        evaluation: what `evaluate` returned.
    """
    return "".join(f"{line}".rstrip() + "\n" for line in _lines(evaluation))


def _lines(evaluation: Mapping[str, Any]) -> Iterator[str]:
    has_paper = evaluation["paper"] is not None
    yield _title(evaluation)
    yield HEADER + (PAPER if has_paper else "")
    for entry in evaluation["sets"].values():
        last = entry["pass"][-1]
        yield (
            f"{entry['label'][:10]:<10}{entry['problems']:>9,}{entry['samples']['all']:>9,}"
            f"   {_spread(entry['avg'])}  {_spread(last)}" + (_paper(entry) if has_paper else "")
        )
    average = evaluation["average"]
    yield (
        f"{'average':<10}{'':>18}   {_spread(average)}  {'':<22}"
        + (_paper(average) if has_paper else "")
    )
    if any(entry["paper_inside"] is False for entry in [average, *evaluation["sets"].values()]):
        yield "* the paper's number lies outside our interval"
    for entry in evaluation["sets"].values():
        if entry["published"] not in (None, entry["problems"]):
            yield f"{entry['label']}: {entry['problems']} of {entry['published']} problems"
    for gap in evaluation["not_computable"]:
        yield from wrap(f"not computable: {gap['what']}, needs {gap['needs']}", WIDEST)
    if evaluation["recipe"]:
        yield f"Row of Table 1, {arm_of(evaluation['recipe']).model_label}:"
        yield row(evaluation)


def _title(evaluation: Mapping[str, Any]) -> str:
    step = "" if evaluation["step"] is None else f" at step {evaluation['step']}"
    return f"Accuracy in percent{step}; intervals over problems" + (
        f"; paper: {SOURCE}" if evaluation["paper"] else ""
    )


def row(evaluation: Mapping[str, Any]) -> str:
    """Row of Table 1 in Markdown; a set that was not evaluated is empty."""
    arm = arm_of(evaluation["recipe"])
    cells = [arm.label, *map(number, numbers(evaluation))]
    return f"| {' | '.join(cells)} |"


def numbers(evaluation: Mapping[str, Any]) -> list[float | None]:
    """Accuracy on each set and their average, percent; None where there is none."""
    sets = evaluation["sets"]
    found = [sets[name]["avg"]["percent"] if name in sets else None for name in EVALUATION]
    return [*found, evaluation["average"]["percent"]]


def number(value: float | None, decimals: int = 1) -> str:
    """A percentage; nothing for None."""
    return "" if value is None else f"{value:.{decimals}f}"


def _spread(estimate: Mapping[str, Any]) -> str:
    """`@16  33.3 [20.1, 48.0]`, 22 columns wide."""
    if estimate["percent"] is None:
        return f"{'-':<22}"
    k = "" if estimate.get("k") is None else f"@{estimate['k']}"
    interval = f"[{estimate['low']:.1f}, {estimate['high']:.1f}]"
    return f"{k:<4}{estimate['percent']:>5.1f} {interval:<13}"[:23]


def _paper(entry: Mapping[str, Any]) -> str:
    if entry["paper"] is None:
        return ""
    if entry["difference"] is None:
        return f"{entry['paper']:>7.1f}"
    outside = "" if entry["paper_inside"] else " *"
    return f"{entry['paper']:>7.1f}{entry['difference']:>+12.1f}{outside}"
