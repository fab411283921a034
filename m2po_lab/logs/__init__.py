"""Logs of rollouts and training: any framework's files in, token batches out."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from m2po_lab.logs.errors import UnreadableLogError as UnreadableLogError
    from m2po_lab.logs.open import Log as Log
    from m2po_lab.logs.open import open_log as open_log
    from m2po_lab.logs.reader import ReadOptions as ReadOptions
    from m2po_lab.logs.rows import Rows as Rows
    from m2po_lab.logs.writer import LogWriter as LogWriter

__all__ = ["Log", "LogWriter", "ReadOptions", "Rows", "UnreadableLogError", "open_log"]

_HOMES = {
    "Log": "m2po_lab.logs.open",
    "LogWriter": "m2po_lab.logs.writer",
    "ReadOptions": "m2po_lab.logs.reader",
    "Rows": "m2po_lab.logs.rows",
    "UnreadableLogError": "m2po_lab.logs.errors",
    "open_log": "m2po_lab.logs.open",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the writer alone needs no reader."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
