"""READERS: every format, in the order in which a file is tried against them."""

from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.jsonlines import JsonLines
from m2po_lab.logs.native import Native
from m2po_lab.logs.reader import Reader

READERS: tuple[Reader, ...] = (
    Native(),
    JsonLines(),
)
"""Formats with a mark of their own first; the generic ones last."""


def by_name(name: str) -> Reader:
    """Return the reader that `--format` names.

    Raises:
        UnreadableLogError: there is none of that name; the message lists them.
    """
    for reader in READERS:
        if reader.name == name:
            return reader
    names = ", ".join(sorted({reader.name for reader in READERS}))
    raise UnreadableLogError("--format", f"no format is called {name!r}", f"auto or one of {names}")
