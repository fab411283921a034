"""Errors in one line: place, value, remedy."""

import errno
from pathlib import Path
from traceback import extract_tb

from cyclopts import CycloptsError

REMEDIES = {
    errno.ENOSPC: "free some space, or write elsewhere",
    errno.EDQUOT: "free some space, or write elsewhere",
    errno.EISDIR: "name a file",
    errno.EBADF: "redirect it, or give --quiet with --out DIR or --json FILE",
}
"""What to do about errors of the system that no permission explains."""

ONE_LINE = ("UnreadableLogError", "DamagedLogError", "UnusableError")
"""Errors of packages that are imported late, whose message is a line of this kind already."""


class UsageError(ValueError):
    """An option that cannot be used; the message is one line: place, value, remedy.

    Args:
        place: the option, as typed.
        problem: what is wrong, with the value.
        remedy: what to type instead.
    """

    def __init__(self, place: str, problem: str, remedy: str = "") -> None:
        """Join the parts."""
        super().__init__(f"{place}: {problem}" + (f"; {remedy}" if remedy else ""))


def explained(error: Exception) -> str:
    """Turn any exception into one printable line that says where, what and what to do."""
    if isinstance(error, CycloptsError):
        return f"{one_line(str(error))} Try --help."
    if isinstance(error, UsageError) or type(error).__name__ in ONE_LINE:
        return one_line(str(error))
    if isinstance(error, OSError) and (error.filename is not None or error.errno in REMEDIES):
        reason = error.strerror or type(error).__name__
        place = "" if error.filename is None else f"{error.filename}: "
        remedy = REMEDIES.get(error.errno or 0, "check the path and its permissions")
        return one_line(f"{place}{reason}; {remedy}")
    frame = extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    return one_line(
        f"{place}: unexpected {type(error).__name__}: {error}; this is a bug, "
        "M2PO_LAB_TRACEBACK=1 shows the traceback to report"
    )


def one_line(text: str) -> str:
    """Join lines and replace what a terminal would act on."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
