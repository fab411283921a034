"""What the notebooks share: pictures, sliders, sentences with numbers, exercises with a checker.

A notebook imports and defines nothing: mathematics comes from `m2po_lab.core` and `toy_envs`,
experiments from `lessons`, pictures from `drawings`, questions from `exercises`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from m2po_lab.tutorials.answers import check as check
    from m2po_lab.tutorials.answers import solution as solution
    from m2po_lab.tutorials.live import say as say
    from m2po_lab.tutorials.live import slide as slide
    from m2po_lab.tutorials.pictures import theme as theme

_HOME_OF = {
    "Picture": "m2po_lab.tutorials.pictures",
    "check": "m2po_lab.tutorials.answers",
    "say": "m2po_lab.tutorials.live",
    "slide": "m2po_lab.tutorials.live",
    "solution": "m2po_lab.tutorials.answers",
    "theme": "m2po_lab.tutorials.pictures",
}

__all__ = ["Picture", "check", "say", "slide", "solution", "theme"]


def __getattr__(name: str) -> Any:
    """Resolve a public name on first access, so that the command loads no plotting."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'm2po_lab.tutorials' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value
