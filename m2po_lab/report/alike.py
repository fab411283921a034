"""Objectives that drop the same tokens of a log, told together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Alike:
    """Objectives whose dropped sets are the same.

    Attributes:
        names: of the objectives; the first stands for all.
        dropped: tokens that each drops.
        at: index of the first one in the report's overlap.
    """

    names: Sequence[str]
    dropped: int
    at: int

    @property
    def short(self) -> str:
        """The first name and how many others."""
        others = len(self.names) - 1
        return f"{self.names[0]} +{others}" if others else self.names[0]


def alike(overlap: dict[str, Any] | None, first: Sequence[str] = ()) -> list[Alike]:
    """Gather objectives with equal dropped sets, groups with one of `first` in front.

    Args:
        overlap: as in the report; objectives that drop nothing are not in it.
        first: names in the order they should lead.
    """
    if not overlap:
        return []
    names, jaccard = overlap["objectives"], overlap["jaccard"]
    order = {name: i for i, name in enumerate(dict.fromkeys([*first, *names]))}
    places = sorted(range(len(names)), key=lambda i: order[names[i]])
    found: list[list[int]] = []
    for i in places:
        same = next((group for group in found if jaccard[group[0]][i] == 1), None)
        if same is None:
            found.append([i])
        else:
            same.append(i)
    return [
        Alike([names[i] for i in group], overlap["dropped"][group[0]], group[0]) for group in found
    ]
