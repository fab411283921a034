"""The table of objectives: which come first, what each does to the tokens of the log."""

from collections.abc import Callable, Sequence
from typing import Any

from m2po_lab.report.format import number, percent
from m2po_lab.report.grid import Column
from m2po_lab.report.items import Report

MOST_OBJECTIVES = 12
"""Objectives a terminal shows; the page and the JSON have every one that can be computed."""
ELSEWHERE = "all of them on the page (--out DIR)"

FIRST = ("ppo", "dapo", "dual_clip", "m2po", "m2po_released", "m2po_areal", "m2po_all_tokens")
"""Shown before the others: the clips, then M2PO and the variants of it that are in use."""
OWN = {"prime-rl": "dppo_tv"}
"""Format of a log -> the objective its framework trains with, where that is no clip of r."""

_COLUMNS: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("no gradient", "zero_gradient_fraction", percent),
    ("at A>0", "binding_fraction_positive", percent),
    ("at A<0", "binding_fraction_negative", percent),
    ("mass kept", "mass_kept", percent),
    ("mean w", "weight_mean", number),
    ("ESS of w", "weight_ess_fraction", number),
    ("variance", "variance_ratio", number),
)
"""Head, field of the report, how it is written; a column that is null throughout is left out."""

Results = dict[str, Any]


def leading(report: Report) -> list[str]:
    """Names that come first: the framework's own objective, then the familiar ones."""
    own = [OWN[source["format"]] for source in report["inputs"] if source["format"] in OWN]
    return list(dict.fromkeys([*own, *FIRST]))


def computable(report: Report) -> list[str]:
    """Names of the objectives that have numbers, leading ones first."""
    objectives = report["objectives"] or {}
    names = [name for name, result in objectives.items() if result is not None]
    first = [name for name in leading(report) if name in names]
    return first + [name for name in names if name not in first]


def objective_table(objectives: Results, names: Sequence[str]) -> list[Column]:
    """Lay out the share of tokens each objective leaves without a gradient, and its weights."""
    columns = [Column("objective", names, left=True)]
    for head, field, write in _COLUMNS:
        values = [share(objectives[name], field) for name in names]
        if any(value is not None for value in values):
            columns.append(Column(head, [write(value) for value in values]))
    return columns


def share(result: dict[str, Any], field: str) -> float | None:
    """One number of an objective; a mask leaves exactly its masked tokens without a gradient."""
    value = result.get(field)
    if value is None and field == "zero_gradient_fraction":
        value = result.get("masked_fraction")
    return None if value is None else float(value)
