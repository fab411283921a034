"""What adds up: evidence of two parts of a log becomes the evidence of the whole by `+`."""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def add(a: Any, b: Any) -> Any:
    """Add two values of the same kind: dicts key by key, None is the neutral element."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, dict):
        return {key: add(a.get(key), b.get(key)) for key in (*a, *(k for k in b if k not in a))}
    return a + b


class Additive:
    """Base of dataclasses whose `+` adds field by field; associative and order-independent."""

    def __add__(self, other: Self) -> Self:
        """Evidence of the union of two disjoint parts.

        Raises:
            TypeError: the other part was made by another version of this package.
        """
        names = [item.name for item in fields(self)]  # type: ignore[arg-type]
        if any(name not in vars(other) for name in names):
            raise TypeError(
                f"{type(self).__name__} of another version of m2po-lab cannot be added; "
                "let every worker run the same version"
            )
        return type(self)(**{n: add(vars(self)[n], vars(other)[n]) for n in names})


@dataclass(frozen=True)
class Peak:
    """The largest value and how often it occurs exactly; a pile-up shows as a large count."""

    value: float
    count: int

    def __add__(self, other: "Peak") -> "Peak":
        """The larger value; equal ones add their counts."""
        if self.value == other.value:
            return Peak(self.value, self.count + other.count)
        return self if self.value > other.value else other


@dataclass(frozen=True)
class Span:
    """Smallest and largest of a set of numbers."""

    low: float
    high: float

    def __add__(self, other: "Span") -> "Span":
        """Span of the union."""
        return Span(min(self.low, other.low), max(self.high, other.high))


def peak(values: Floats) -> Peak | None:
    """Return the peak of an array, None for an empty one."""
    if not values.size:
        return None
    top = float(values.max())
    return Peak(top, int((values == top).sum()))


def span(values: Any) -> Span | None:
    """Return the span of an array, None for an empty one."""
    return Span(float(values.min()), float(values.max())) if values.size else None
