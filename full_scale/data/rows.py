"""Rows in the form that verl reads, and the questions by which problems are compared."""

import re
import unicodedata
from collections.abc import Sequence

import pyarrow as pa

from full_scale.data.layouts import Messages, Problem

INSTRUCTION = r"Solve the problem step by step and put the final answer in \boxed{}."
QUESTION = "{question}"

SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", pa.struct([("split", pa.string()), ("index", pa.int64())])),
    ]
)
PART = SCHEMA.append(pa.field("question", pa.string()))
"""Rows of one set, with the bare question beside them."""

FEW = 10

_SPACING = re.compile(r"\\[,;:! ]|\\(?:quad|qquad|left|right|displaystyle)(?![a-z])|[\s$~]")
_LAST = re.compile(r"[.?!:;,]+$")


def prompt(problem: Problem, instruction: str = INSTRUCTION) -> Messages:
    """Chat that asks for an answer in a box; a ready prompt stays as it is.

    Args:
        problem: what is asked.
        instruction: a sentence to follow the question, or a text with {question} in it.
    """
    if problem.messages is not None:
        return problem.messages
    if QUESTION in instruction:
        content = instruction.replace(QUESTION, problem.question)
    else:
        content = f"{problem.question}\n\n{instruction}".strip()
    return [{"role": "user", "content": content}]


def key(question: str) -> str:
    """What two copies of a question share: letters in one case, without spaces and dollar signs."""
    text = unicodedata.normalize("NFKC", question).casefold()
    return _LAST.sub("", _SPACING.sub("", text))


def bare(prompts: Sequence[str]) -> list[str]:
    """Questions of ready prompts: the texts without what all of them begin and end with.

    Below `FEW` prompts they come back as they are, for they could share words by chance.
    """
    if len(prompts) < FEW:
        return list(prompts)
    head = _shared(prompts)
    rests = [text[len(head) :] for text in prompts]
    tail = _shared([text[::-1] for text in rests])
    return [text[: len(text) - len(tail)].strip() for text in rests]


def _shared(texts: Sequence[str]) -> str:
    """Words that all texts begin with."""
    first, last = min(texts), max(texts)  # what these two share, those between them share too
    pairs = enumerate(zip(first, last, strict=False))
    length = next((i for i, (a, b) in pairs if a != b), len(first))
    return first[: length - len(re.split(r"\s", first[:length])[-1])]
