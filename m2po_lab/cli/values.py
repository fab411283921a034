"""Options that hold more than one value: `a,b`, `name=value,...`, `low,high`."""

import math
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path

from m2po_lab.cli.errors import UsageError


def words(text: str | None) -> tuple[str, ...]:
    """Split at commas; spaces around an entry and empty entries are dropped."""
    return tuple(word for part in (text or "").split(",") if (word := part.strip()))


def chosen(option: str, text: str | None, known: Collection[str]) -> tuple[str, ...]:
    """Split at commas and check that every entry is known.

    Raises:
        UsageError: an unknown entry; the message names the closest known one.
    """
    names = words(text)
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            remedy = f"did you mean {close[0]}?" if close else f"one of {', '.join(sorted(known))}"
            raise UsageError(option, f"{name!r} is unknown", remedy)
    return names


def pairs(option: str, text: str | None) -> dict[str, str]:
    """Read `name=value,name=value`.

    Raises:
        UsageError: an entry without `=`, or with nothing on one side of it.
    """
    found = {}
    for word in words(text):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not (equals and name and value):
            raise UsageError(
                option, f"{word!r} is not ROLE=COLUMN", "for example old=trainer_log_probs"
            )
        found[name] = value
    return found


def nonnegative(option: str, text: str) -> float:
    """Read a finite number of at least 0.

    Raises:
        UsageError: it is not one.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(option, f"{text!r} is not a number of at least 0", "for example 0.04")
    return value


def clip_range(option: str, text: str) -> tuple[float, float]:
    """Read `eps` or `low,high`: the clip keeps r in [1 - low, 1 + high].

    Raises:
        UsageError: not one or two numbers, or out of range.
    """
    parts = words(text)
    if len(parts) not in (1, 2):
        raise UsageError(option, f"{text!r} is not EPS or LOW,HIGH", "for example 0.2 or 0.2,0.28")
    low, high = (nonnegative(option, part) for part in (parts[0], parts[-1]))
    if low > 1:
        problem = f"{text!r} would keep r from {1 - low:g} on, but a ratio is never below 0"
        raise UsageError(option, problem, f"a LOW of at most 1: {option} 1,{high:g}")
    return low, high


def directory(option: str, path: Path | None) -> None:
    """Refuse a path that stands for something else than a directory; it need not exist.

    Raises:
        UsageError: a file is there.
    """
    if path is not None and path.exists() and not path.is_dir():
        raise UsageError(option, f"{path} is no directory", "name a directory, new or old")


def json_file(option: str, path: str | None) -> None:
    """Refuse what is no name of a file for JSON; `-` is standard output.

    Raises:
        UsageError: another option in its place, or a directory.
    """
    if path is not None and path.startswith("-") and path != "-":
        raise UsageError(option, f"{path!r} is no file name", "give a file, or -")
    if path is not None and Path(path).is_dir():
        raise UsageError(option, f"{path} is a directory", "name a file in it, or -")
