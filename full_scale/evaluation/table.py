"""Table 1 of the paper with our numbers below, as far as there are any."""

from collections.abc import Mapping, Sequence
from typing import Any

from full_scale.data.sets import EVALUATION, SETS
from full_scale.evaluation.paper import PAPER, SOURCE, Arm, Published, arm_of, published
from full_scale.evaluation.report import number, numbers
from full_scale.models import MODELS

LABEL = 19


def table(evaluations: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Put evaluations beside the paper's rows.

    Args:
        evaluations: what `evaluate` returned for recipes; a later one of a recipe replaces it.

    Returns:
        `{"source", "columns", "rows": [{"model", "row", "recipe", "paper", "ours"}]}`, percent;
        `paper` and `ours` are null, or a number or null a column, the average last.
    """
    rows = [_row(arm, arm_name(arm), given) for arm, given in PAPER.items()]
    by_recipe = {row["recipe"]: row for row in rows}
    for evaluation in evaluations:
        name = evaluation["recipe"]
        if name not in by_recipe:
            by_recipe[name] = _row(arm_of(name), name, published(name))
        by_recipe[name]["ours"] = numbers(evaluation)
    order = list(MODELS)
    rows = sorted(by_recipe.values(), key=lambda row: order.index(row["model"]))
    columns = [*(SETS[name].label for name in EVALUATION), "Average"]
    return {"source": SOURCE, "columns": columns, "rows": rows}


def arm_name(arm: Arm) -> str:
    """Name of the recipe of an arm."""
    return f"{arm.model}-{arm.method}-s{arm.staleness}"


def _row(arm: Arm, recipe: str, given: Published | None) -> dict[str, Any]:
    label = arm.label
    extra = recipe.removeprefix(arm_name(arm)).lstrip("-")
    return {
        "model": arm.model,
        "row": f"{label} {extra}".strip(),
        "recipe": recipe,
        "paper": None if given is None else [*given.sets.values(), given.average],
        "ours": None,
    }


def text(whole: Mapping[str, Any]) -> str:
    """Write the table for people, 100 columns wide; what nobody measured is empty."""
    columns = whole["columns"]
    lines = [
        f"Accuracy in percent; paper: {whole['source']}; ours: evaluated here, else empty",
        _line("", "", columns, columns),
    ]
    model = None
    for row in whole["rows"]:
        if row["model"] != model:
            model = row["model"]
            lines.append(MODELS[model].label)
        paper = [_printed(value) for value in row["paper"] or ()]
        ours = [number(value) for value in row["ours"] or ()]
        lines.append(_line(f"  {row['row']}", "paper", paper, columns))
        lines.append(_line("", "ours", ours, columns))
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _printed(value: float) -> str:
    """A number with the decimals of the paper, which gives two in one column."""
    return number(value, 1 if round(value, 1) == value else 2)


def _line(label: str, who: str, cells: Sequence[str], columns: Sequence[str]) -> str:
    widths = [max(len(name) + 2, 7) for name in columns]
    values = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=False))
    return f"{label[:LABEL]:<{LABEL}} {who:<5}{values}"
