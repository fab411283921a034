"""Exercises: when an answer is right, and what a wrong one says about the way to it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from importlib import import_module
from types import MappingProxyType
from typing import Any

LESSONS = ("weights", "clipping", "m2po", "regions", "reallog")
"""Modules of `m2po_lab.tutorials.exercises`; each has a literal table EXERCISES."""

Judge = Callable[[Any], str | None]
"""An answer -> what is wrong with it; None if it is right."""


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One question of a notebook, whose text stands there.

    Attributes:
        judge: judges an answer.
        right: makes an answer that passes.
        solution: makes the way there, Markdown; its numbers come from the program.
    """

    judge: Judge
    right: Callable[[], Any]
    solution: Callable[[], str]


@dataclass(frozen=True)
class Verdict:
    """What a checker says; a notebook shows it in colour.

    Attributes:
        exercise: its name.
        passed: None where nothing was answered yet.
        message: why.
    """

    exercise: str
    passed: bool | None
    message: str

    def __repr__(self) -> str:
        """One line."""
        word = {None: "to do", True: "right", False: "not yet"}[self.passed]
        return f"{self.exercise}: {word}. {self.message}"

    def _repr_html_(self) -> str:
        color = {None: "#68707a", True: "#2e7d4f", False: "#b3303a"}[self.passed]
        style = f"border-left: 4px solid {color}; padding: .3em .8em; margin: .3em 0"
        return f'<div style="{style}">{escape(repr(self))}</div>'


class Solution(str):
    """Markdown, shown as such."""

    def _repr_markdown_(self) -> str:
        return str(self)


def check(name: str, answer: Any) -> Verdict:
    """Judge an answer to an exercise; `...` counts as not answered.

    Raises:
        ValueError: no such exercise.
    """
    exercise = _exercise(name)
    if answer is ...:
        return Verdict(name, None, "Put your answer in place of the dots and run the cell.")
    problem = exercise.judge(answer)
    return Verdict(name, problem is None, "Well done." if problem is None else problem)


def solution(name: str) -> Solution:
    """How to get to the answer.

    Raises:
        ValueError: no such exercise.
    """
    return Solution(_exercise(name).solution())


def exercises() -> Mapping[str, Exercise]:
    """Every exercise by name, `<lesson>-<question>`."""
    tables = (import_module(f"m2po_lab.tutorials.exercises.{lesson}") for lesson in LESSONS)
    found: dict[str, Exercise] = {}
    for lesson, table in zip(LESSONS, tables, strict=True):
        found |= {f"{lesson}-{name}": exercise for name, exercise in table.EXERCISES.items()}
    return MappingProxyType(found)


def number(
    truth: Callable[[], float],
    hints: Mapping[str, Callable[[], float]] = MappingProxyType({}),
    *,
    within: float = 0.01,
) -> Judge:
    """Judge a number.

    Args:
        truth: makes the right one.
        hints: what to say -> the wrong number that gets it.
        within: relative difference that still counts as equal.
    """

    def judge(answer: Any) -> str | None:
        value = _number(answer)
        if value is None:
            return f"This asks for a number, not for {type(answer).__name__}."
        if _close(value, truth(), within):
            return None
        for hint, wrong in hints.items():
            if _close(value, wrong(), within):
                return hint
        return f"{value:.4g} is too {'high' if value > truth() else 'low'}."

    return judge


def choice(
    truth: Callable[[], frozenset[str]], options: frozenset[str], hints: Mapping[str, str]
) -> Judge:
    """Judge a choice of one or several names.

    Args:
        truth: finds the right ones.
        options: what may be chosen.
        hints: a name -> what to say if it is missing, or chosen and wrong.
    """

    def judge(answer: Any) -> str | None:
        chosen = frozenset([answer]) if isinstance(answer, str) else _names(answer)
        if chosen is None or not chosen <= options:
            return f"Choose from {', '.join(sorted(options))}: one name, or a set of them."
        wrong = sorted(chosen ^ truth())
        return None if not wrong else hints.get(wrong[0], f"Look at {wrong[0]} again.")

    return judge


def _number(answer: Any) -> float | None:
    """A float of what is a finite number, numpy's and torch's included; else None."""
    if isinstance(answer, bool | str):
        return None
    try:
        value = float(answer)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _names(answer: Any) -> frozenset[str] | None:
    try:
        names = frozenset(answer)
    except TypeError:
        return None
    return names if all(isinstance(name, str) for name in names) else None


def _close(one: float, other: float, within: float) -> bool:
    return abs(one - other) <= within * abs(other) if other else abs(one) <= within


def _exercise(name: str) -> Exercise:
    known = exercises()
    if name not in known:
        raise ValueError(f"no exercise {name!r}; one of {', '.join(known)}")
    return known[name]
