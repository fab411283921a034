"""Group ids: how many responses share one, and do they share a prompt?"""

from dataclasses import dataclass

import numpy as np

from m2po_lab.integrity.additive import Additive, Bools
from m2po_lab.integrity.flat import Flat
from m2po_lab.logs.hashing import bytes_hash, mix
from m2po_lab.logs.rows import UNKNOWN


@dataclass(frozen=True)
class Group:
    """One group of one step.

    Args:
        members: hashes of the distinct rows, at most `ENOUGH`.
        prompts: hashes of the distinct prompts, at most `ENOUGH`.
        name: its id, for messages.
    """

    members: frozenset[int]
    prompts: frozenset[int]
    name: str

    def __add__(self, other: "Group") -> "Group":
        """The same group in two parts of the log."""
        members = sorted(self.members | other.members)[:ENOUGH]
        prompts = sorted(self.prompts | other.prompts)[:ENOUGH]
        return Group(frozenset(members), frozenset(prompts), min(self.name, other.name))


ENOUGH = 2
"""Two members show that a group is no singleton, two prompts that it is mixed."""


@dataclass(frozen=True)
class Groups(Additive):
    """Groups by key of step and id, as long as there are not more than a summary holds.

    Args:
        rows: rows with a group id.
        table: key -> group.
    """

    rows: int
    table: dict[int, Group]


def groups(flat: Flat, rows: Bools) -> Groups | None:
    """Groups among the rows under `rows`; None without group ids.

    Ids may start anew in every step (`group_index`), so the step is part of the key; without
    steps it is the file. One response
    scored by several trainer versions is one member.
    """
    ids = flat.rows.group_id
    if ids is None:
        return None
    step = flat.row_fact(flat.rows.step)
    files = flat.rows.source or [""] * flat.n_rows
    step_key = mix(step.view(np.uint64))
    names, prompts = flat.rows.row_id, flat.rows.prompt_key
    table: dict[int, Group] = {}
    counted = 0
    for row in np.flatnonzero(rows).tolist():
        name = ids[row]
        if name is None:
            continue
        counted += 1
        own = names[row] if names is not None else None
        member = bytes_hash((own if own is not None else flat.rows.place(row)).encode())
        prompt = 0 if prompts is None else int(prompts[row])
        key = bytes_hash(name.encode()) ^ int(step_key[row])
        if step[row] == UNKNOWN:
            key ^= bytes_hash(files[row].encode())
        one = Group(frozenset({member}), frozenset({prompt} if prompt else ()), name)
        table[key] = table[key] + one if key in table else one
    return Groups(counted, table)
