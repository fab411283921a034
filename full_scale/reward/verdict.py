"""Whether an answer is right: words letter by letter, the rest by math-verify."""

import re
from enum import Enum
from typing import Any

from full_scale.reward.answer import LONGEST
from full_scale.reward.spelling import normal

WRAPPED = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mbox)\s*\{([^{}]*)\}")
WORDS = re.compile(r"[a-z]+(?:[ '-][a-z]+)*")
LONG_WORD = re.compile(r"[a-z]{4}")
"""Four letters are a word; fewer may be a product of variables."""
CHOICE = re.compile(r"\(?([a-h])\)?")
CHOSEN = re.compile(r"(?:\(([a-h])\)\s*|([a-h])[.:)]\s+)\S.*", re.DOTALL)
BASE = re.compile(r"([0-9a-z]+)_\{?(\d+)\}?")


class Verdict(Enum):
    """What was found out about an answer."""

    RIGHT = "right"
    WRONG = "wrong"
    NOTHING = "nothing"


def judge(answer: str, truth: str, *, in_text: bool = False) -> Verdict:
    """Compare an answer with the truth, in this process and without a limit of time.

    Args:
        answer: content of a box; with `in_text` a text in which math-verify looks for the answer.
        truth: the right answer, as a number, LaTeX or words.
        in_text: whether the answer still has to be found.

    Returns:
        NOTHING only with `in_text`, if no answer was found.
    """
    if not in_text:
        words = _by_letters(answer, truth)
        if words is not None:
            return Verdict.RIGHT if words else Verdict.WRONG
    given, right = ([answer] if in_text else _values(answer)), _values(truth)
    if len(given) == len(right):  # both in percent, or neither
        given, right = given[:1], right[:1]
    found, wanted = _parse(given), _parse(right)
    if not found:
        return Verdict.NOTHING if in_text else Verdict.WRONG
    from math_verify import verify

    equal = verify(wanted, found, timeout_seconds=None, allow_set_relation_comp=True)
    return Verdict.RIGHT if equal else Verdict.WRONG


def _by_letters(answer: str, truth: str) -> bool | None:
    """Verdict where letters decide; None where mathematics must."""
    if max(len(answer), len(truth)) > LONGEST:
        return answer == truth
    given, right = plain(answer), plain(truth)
    if given == right:
        return True
    if WORDS.fullmatch(right) and LONG_WORD.search(right):
        return False
    if choice := CHOICE.fullmatch(right):
        chosen = CHOSEN.fullmatch(given) or CHOICE.fullmatch(given)
        return None if chosen is None else choice[1] in chosen.groups()
    bases = BASE.fullmatch(given), BASE.fullmatch(right)
    if bases[0] and bases[1]:
        return bases[0].groups() == bases[1].groups()
    return None


def plain(latex: str) -> str:
    """Letters of an answer without the commands that only set them; small, as for math-verify."""
    text = WRAPPED.sub(r"\1", normal(latex))
    return re.sub(r"\s+", " ", text.replace(r"\ ", " ")).strip(" .").lower()


def _values(latex: str) -> list[str]:
    """Values of an answer: 50 % is .5 to one writer and 50 to another."""
    text = normal(latex)
    number = text.removesuffix(r"\%")
    values = [number] if number == text else [number, rf"\frac{{{number}}}{{100}}"]
    return [rf"\boxed{{{value}}}" for value in values]


def _parse(texts: list[str]) -> list[Any]:
    from math_verify import parse

    return [found for text in texts for found in parse(text, parsing_timeout=None)]
