r"""One spelling for what LaTeX and models write in many ways, where math-verify knows only some.

Each rule is a pattern with its replacement, tried in order on truth and answer alike.
"""

import re
from collections.abc import Callable
from fractions import Fraction

FONTS = "boldsymbol|bm|mathbf|mathit|mathsf|underline|displaystyle|textstyle"
NUMBER = r"\d+(?:\.\d+)?"


def _exponent(found: re.Match[str]) -> str:
    return rf"{found[1]} \times 10^{{{int(found[2])}}}"


def _mixed(found: re.Match[str]) -> str:
    sign, whole, above, below = found[1], int(found[2]), int(found[3]), int(found[4])
    return rf"{sign}\frac{{{whole * below + above}}}{{{below}}}" + (found[5] or "")


def _repeating(found: re.Match[str]) -> str:
    whole, fixed, period = found[1] or "0", found[2], found[3]
    value = Fraction(int(whole + fixed + period) - int(whole + fixed))
    value /= 10 ** len(fixed) * (10 ** len(period) - 1)
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"


def _ratio(found: re.Match[str]) -> str:
    first, *others = (part.strip() for part in found[0].split(":"))
    return "(" + ",".join(rf"\frac{{{other}}}{{{first}}}" for other in others) + ")"


Replacement = str | Callable[[re.Match[str]], str]

RULES: tuple[tuple[str, Replacement], ...] = (
    # What stands around an answer and is no part of it.
    (r"^\s*\$\$?([^$]*)\$\$?\s*$", r"\1"),
    (r"^\s*\\\(((?:(?!\\\)).)*)\\\)\s*$", r"\1"),
    (r"^\s*\\\[((?:(?!\\\]).)*)\\\]\s*$", r"\1"),
    (r"^\*\*(.*)\*\*$", r"\1"),
    (r"(?:\\\\|\\?\s|\\[,;:!]|\\quad|\.)+$", ""),
    (rf"\\(?:{FONTS})\s*\{{([^{{}}]*)\}}", r"\1"),
    (r"\\(?:text)?color\s*\{[^{}]*\}\s*\{([^{}]*)\}", r"\1"),
    (r"\\overline\s*\{([A-Z]{2,})\}", r"\1"),
    (r"(?<=\S)\s*[,;(]\s*\(?[a-z]\s*\\in\s*\\math(?:bb|bf)\s*\{?[ZN]\}?\s*\)?$", ""),
    # Signs.
    (r"(?:\s|\\text\s*\{\s*)*(?:\\?%|\b(?:percent(?:age)?|pct)\b)\s*\}?$", r"\\%"),
    ("°", r"^\\circ"),
    (r"\\varnothing\b", r"\\emptyset"),
    (r"\{\s+", "{"),
    (r"\s+\}", "}"),
    # Numbers.
    (r"(?<=\d)(?:\\[,;:!]\s*|~|\{,\}|[ ])+(?=\d{3}(?!\d))", ""),
    (rf"^(-?{NUMBER})[eE]([+-]?\d+)$", _exponent),
    (r"(\d*)\.(\d*)\\overline\s*\{(\d+)\}", _repeating),
    (r"^(-?)(\d+)\s*\\[dtc]?frac\s*\{(\d+)\}\s*\{(\d+)\}\s*(\\%)?$", _mixed),
    (r"^[^:,()]+(?::[^:,()]+){2,}$", _ratio),
)
COMPILED = tuple((re.compile(pattern), replacement) for pattern, replacement in RULES)

ANGLE = re.compile(rf"({NUMBER})\s*\^\s*\{{?\s*\\circ\s*\}}?")
TRIGONOMETRY = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)\b")


def normal(latex: str) -> str:
    """Rewrite an answer in the spelling that math-verify reads.

    Args:
        latex: content of a box, or a truth.

    Returns:
        The answer as it was if nothing would be left of it.
    """
    text = latex
    for pattern, replacement in COMPILED:
        text = pattern.sub(replacement, text)
    # math-verify drops the degree sign, which is right everywhere but inside such a function.
    if TRIGONOMETRY.search(text):
        text = ANGLE.sub(r"\\frac{\1\\pi}{180}", text)
    return text.strip() or latex.strip()
