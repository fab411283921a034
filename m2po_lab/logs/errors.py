"""The errors of this package, and what broken content makes other libraries raise."""

import struct

import pyarrow as pa

CONTENT_ERRORS = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    OSError,
    struct.error,
    pa.ArrowException,
)
"""What decoding raises on content that is not what it claims to be."""


LONGEST = 600
"""Characters of a message; what a library says about broken content can be endless."""


class UnreadableLogError(ValueError):
    """A log that cannot be read; the message is one line: place, value, remedy.

    Args:
        place: file, and line or row if there is one.
        problem: what is wrong, with the value.
        remedy: what the user can do about it.
    """

    def __init__(self, place: str, problem: str = "", remedy: str = "") -> None:
        """Join the parts into one line; control characters and newlines become spaces."""
        text = place + (f": {problem}" if problem else "") + (f"; {remedy}" if remedy else "")
        printable = "".join(c if c.isprintable() else " " for c in text)
        line = " ".join(printable.split())
        super().__init__(line if len(line) <= LONGEST else line[: LONGEST - 3] + "...")


class DamagedLogError(UnreadableLogError):
    """One file of a log is cut short or broken; beside readable ones it counts as a bad row."""
