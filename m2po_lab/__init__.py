"""Importance-weight statistics for off-policy language-model training.

The two functions most users need are here; they are resolved on first use, so that
`import m2po_lab` and `import m2po_lab.core` stay as light as the arrays they work on.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from m2po_lab.api import analyze as analyze
    from m2po_lab.logs import open_log as open_log

    __version__: str

_HOME_OF = {
    "analyze": "m2po_lab.api",
    "open_log": "m2po_lab.logs",
}

__all__ = ["__version__", "analyze", "open_log"]


def __getattr__(name: str) -> Any:
    """Resolve a public name on first access (PEP 562)."""
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("m2po-lab")
    elif name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module 'm2po_lab' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the lazy names beside those already loaded."""
    return sorted({*globals(), *__all__})
