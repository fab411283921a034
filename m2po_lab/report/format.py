"""How a number, an interval or a piece of a log is written for a reader."""

import math
import unicodedata
from typing import Any

ABSENT = "–"
"""Shown where a number is null; the reason stands under "not computable"."""


def number(value: float | None, digits: int = 4) -> str:
    """Write a number with `digits` significant digits; very small and large ones as 2.78e-6."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if value == 0:
        return "0"
    size = abs(value)
    if 1e-3 <= size < 1e5:
        text = f"{value:.{digits}g}"
        return f"{value:.0f}" if "e" in text else text
    mantissa, exponent = f"{value:.{digits - 2}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def count(value: int | None) -> str:
    """Write a count in full with separators, or in millions from ten million on."""
    if value is None:
        return ABSENT
    return f"{value / 1e6:,.1f}M" if abs(value) >= 10_000_000 else f"{value:,}"


def percent(fraction: float | None) -> str:
    """Write a fraction of one as a percentage: .9972 is 99.7 %, .00066 is .066 %."""
    if fraction is None or not math.isfinite(fraction):
        return ABSENT
    value = 100 * fraction
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f} %"
    if abs(value) < 0.001:
        return "<0.001 %" if value > 0 else f"{number(value, 2)} %"
    text = f"{value:.3g}"
    return ">99.9 %" if fraction < 1 and float(text) >= 100 else f"{text} %"


def interval(low: float | None, high: float | None) -> str:
    """Write a 95 % interval as `low..high`."""
    if low is None or high is None:
        return ABSENT
    return f"{number(low, 3)}..{number(high, 3)}"


def plain(value: Any, limit: int = 0) -> str:
    r"""Make text from a log safe to print: control and direction characters appear as \x1b, \u202e.

    Args:
        value: anything; it is turned into text.
        limit: longest result in characters, 0 for no limit; a cut is marked by an ellipsis.
    """
    text = "".join(_visible(character) for character in str(value))
    return f"{text[: limit - 1]}…" if limit and len(text) > limit else text


def _visible(character: str) -> str:
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    named = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}.get(character)
    if named is not None:
        return named
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def evidence(value: Any) -> str:
    """Write one value of a finding's evidence; lists are cut after four entries."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ABSENT}[value]
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict):
        known = {k: v for k, v in value.items() if v is not None and v != []}
        return ", ".join(f"{plain(k)} {evidence(v)}" for k, v in known.items())
    if isinstance(value, list | tuple):
        shown = ", ".join(evidence(v) for v in value[:4])
        return f"{shown}, … ({len(value)} in all)" if len(value) > 4 else shown
    return plain(value, limit=120)
