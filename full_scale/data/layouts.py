"""One published row -> question and answer, whatever the columns are called."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from full_scale.data.answers import answer_text
from full_scale.reward.answer import boxed

Row = Mapping[str, Any]
Messages = list[dict[str, str]]

QUESTIONS = ("problem", "question", "prompt", "input", "query")
ANSWERS = (
    "answer",
    "final_answer",
    "target",
    "expected_answer",
    "reward_model",
    "ground_truth",
    "gt_answer",
    "answers",
)
"""In order of preference; `reward_model` is that of verl's rows, an object."""
SOLUTIONS = ("solution", "solutions", "generated_solution")
"""Texts whose last box is the answer, where no column holds the answer alone."""


@dataclass(frozen=True)
class Problem:
    """A problem as it was published.

    Attributes:
        question: its text.
        answer: its ground truth; None if the row holds none.
        messages: a ready prompt, where the row has verl's form already.
    """

    question: str
    answer: str | None
    messages: Messages | None = None


def columns(row: Row) -> dict[str, Any]:
    """A row under lower-case names, as some files write Problem and Answer."""
    return {name.lower(): value for name, value in row.items()}


def problem_of(row: Row, *, integer: bool = False) -> Problem | None:
    """Read one row; None if no column holds a question.

    Args:
        row: as the file has it.
        integer: whether every answer is an integer.
    """
    given = columns(row)
    asked = next((given[name] for name in QUESTIONS if _filled(given.get(name))), None)
    if asked is None:
        return None
    messages = _messages(asked)
    if messages is None and not isinstance(asked, str):
        return None
    question = asked if messages is None else messages[-1]["content"]
    # Context that a problem of OlympiadBench refers to.
    if messages is None and isinstance(context := given.get("context"), str) and context.strip():
        question = f"{context.strip()}\n\n{question}"
    return Problem(question.strip(), _answer(given, integer), messages)


def _filled(value: Any) -> bool:
    return bool(value.strip()) if isinstance(value, str) else bool(value)


def _messages(asked: Any) -> Messages | None:
    """A chat that ends with the user; None if it is a plain text."""
    if isinstance(asked, str) or not isinstance(asked, Sequence):
        return None
    turns = [{"role": str(turn["role"]), "content": str(turn["content"])} for turn in asked]
    return turns if turns[-1]["role"] == "user" else None


def _answer(given: Mapping[str, Any], integer: bool) -> str | None:
    for name in ANSWERS:
        if name in given and (text := answer_text(given[name], integer=integer)) is not None:
            return text
    for name in SOLUTIONS:
        value = given.get(name)
        texts = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        for text in texts:
            if isinstance(text, str) and (found := boxed(text)) is not None:
                return answer_text(found, integer=integer)
    return None


def needs_an_image(row: Row) -> bool:
    """Whether a problem shows a picture, which none of the models here sees."""
    given = columns(row)
    pictures = any(
        value is not None and name.startswith("image") and value != []
        for name, value in given.items()
    )
    return pictures or given.get("modality") == "Multimodal"
