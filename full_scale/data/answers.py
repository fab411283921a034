r"""Published answers as one kind of string: LaTeX without dollar signs, whole numbers without .0.

142.0, "27.0", ["27.0"], "$\frac{1}{2}$", a solution that ends in `\boxed{73}`, {"target": "7"} and
'["7"]' are all in use.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from full_scale.reward.answer import boxed

INNER = ("ground_truth", "target", "value", "answer", "final_answer", "text")
"""Names under which an answer that is an object holds the answer itself."""

_DOLLAR = re.compile(r"(?<!\\)\$")
_WHOLE = re.compile(r"([+-]?\d+)\.0*")
_JSON_LIST = re.compile(r'\[\s*".*"\s*\]', re.DOTALL)
_FENCES = re.compile(r"\\[(\[]((?:(?!\\[()\[\]]).)*)\\[)\]]", re.DOTALL)


def answer_text(value: Any, *, integer: bool = False) -> str | None:
    """Write an answer as a ground truth.

    Args:
        value: a string, a number, a list of the parts of an answer, or an object that holds one.
        integer: whether leading zeros are to go.

    Returns:
        None if it holds no answer.
    """
    match value:
        case None | bool():
            return None
        case int():
            return str(value)
        case float():
            return _number(value)
        case str():
            text = _text(value)
            if text and integer and text.lstrip("+-").isdecimal():
                return str(int(text))
            return text or None
        case Mapping():
            inner = next((value[name] for name in INNER if value.get(name) is not None), None)
            return answer_text(inner, integer=integer)
        case Sequence():
            parts = [answer_text(part, integer=integer) for part in value]
            return ", ".join(part for part in parts if part) or None
        case _:
            return answer_text(value.item(), integer=integer) if hasattr(value, "item") else None


def _number(value: float) -> str | None:
    if not math.isfinite(value):
        return None
    return str(int(value)) if value.is_integer() else repr(value)


def _text(raw: str) -> str:
    text = raw.strip()
    if _JSON_LIST.fullmatch(text):
        try:
            return answer_text(json.loads(text)) or ""
        except ValueError:
            pass
    if (content := boxed(text)) is not None:
        text = content
    text = _FENCES.sub(r"\1", _DOLLAR.sub("", text)).strip()
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text
