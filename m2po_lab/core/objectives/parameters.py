"""Parameters of objectives: defaults with their source, and what values they may take."""

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of an objective.

    Attributes:
        default: its value if not given; None switches the part it belongs to off.
        source: where the default comes from.
        meaning: what it does, with its unit.
        low: smallest allowed number, included.
        high: largest allowed number, included.
        positive: whether 0 is excluded.
        choices: allowed words, where it is one.
    """

    default: float | bool | str | None
    source: str
    meaning: str = ""
    low: float = 0.0
    high: float = math.inf
    positive: bool = False
    choices: tuple[str, ...] = ()

    def check(self, place: str, value: Any) -> Any:
        """Return the value, or raise ValueError that says what is allowed."""
        if value is None and self.default is None:
            return value
        if isinstance(self.default, bool):
            if isinstance(value, bool):
                return value
            raise ValueError(f"{place}={value!r}: pass True or False")
        if self.choices:
            if value in self.choices:
                return value
            raise ValueError(f"{place}={value!r}: {unknown('choice', value, self.choices)}")
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ValueError(f"{place}={value!r}: pass a number {self._range}")
        number = float(value)
        outside = not self.low <= number <= self.high or (self.positive and number == 0)
        if math.isnan(number) or outside:
            raise ValueError(f"{place}={value!r}: pass a number {self._range}")
        return value

    @property
    def _range(self) -> str:
        low = "above 0" if self.positive and self.low == 0 else f"at least {self.low:g}"
        return low if self.high == math.inf else f"{low} and at most {self.high:g}"


def unknown(kind: str, value: Any, valid: Iterable[str]) -> str:
    """Say that a name is unknown, what comes close, and what there is."""
    names = sorted(valid)
    close = difflib.get_close_matches(str(value), names, n=3)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    listed = ", ".join(names) if names else "none"
    return f"unknown {kind} {value!r}{hint} (valid: {listed})"


def merged(name: str, table: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return defaults overridden by the given values, each checked.

    Raises:
        ValueError: an unknown parameter, or a value that is not allowed.
    """
    for key in given:
        if key not in table:
            raise ValueError(f"{name}: {unknown('parameter', key, table)}")
    values = {key: given.get(key, parameter.default) for key, parameter in table.items()}
    return {key: table[key].check(f"{name}: {key}", value) for key, value in values.items()}
