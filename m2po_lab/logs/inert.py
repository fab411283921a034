"""Stand-ins for classes that a pickle names: they keep what was stored and never do anything."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any


class Inert:
    """Takes the place of any object of a foreign class; nothing of that class is ever imported.

    Attributes:
        args: what the pickle would have called the class with.
        state: what the pickle would have restored the object from.
        items: entries stored by key.
        entries: entries appended.
    """

    name = ""

    def __new__(cls, *args: Any, **_: Any) -> "Inert":
        """Keep the arguments."""
        self = object.__new__(cls)
        self.args = args
        self.state = None
        self.items = {}
        self.entries = []
        return self

    args: tuple[Any, ...]
    state: Any
    items: dict[Any, Any]
    entries: list[Any]

    def __init__(self, *args: Any, **_: Any) -> None:
        """Nothing beyond `__new__`."""

    def __setstate__(self, state: Any) -> None:
        """Keep the state."""
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        """Keep an entry of a mapping."""
        self.items[key] = value

    def append(self, value: Any) -> None:
        """Keep an entry of a sequence."""
        self.entries.append(value)

    def extend(self, values: Iterable[Any]) -> None:
        """Keep entries of a sequence."""
        self.entries.extend(values)

    def __call__(self, *args: Any) -> "Inert":
        """What a pickle makes of calling this is a stand-in too."""
        return type(self)(*args)

    @property
    def fields(self) -> dict[str, Any]:
        """Attributes that the object would have had."""
        state = self.state
        if isinstance(state, tuple) and len(state) == 2:
            state = {**(state[0] or {}), **(state[1] or {})}
        return state if isinstance(state, dict) else {}


@lru_cache(maxsize=1024)
def stand_in(module: str, name: str) -> type[Inert]:
    """The stand-in class for a foreign class."""
    return type(name.rpartition(".")[2] or "Inert", (Inert,), {"name": f"{module}.{name}"})
