"""Group ids: how many responses share one, and do they share a prompt?"""

from dataclasses import dataclass

import numpy as np

from m2po_lab.integrity.additive import Additive, Bools
from m2po_lab.integrity.flat import Flat
from m2po_lab.logs.hashing import bytes_hash, mix
from m2po_lab.logs.rows import UNKNOWN

ENOUGH = 8
"""Members and prompts kept of a group; two would do, but merging must not depend on order."""


@dataclass(frozen=True)
class Group:
    """One group of one step.

    Args:
        members: hashes of its distinct rows, the smallest `ENOUGH`.
        prompts: (hash of the file, hash of the prompt), the smallest `ENOUGH` distinct ones.
        name: its id, for messages.
    """

    members: tuple[int, ...]
    prompts: tuple[tuple[int, int], ...]
    name: str

    def __add__(self, other: "Group") -> "Group":
        """The same group in two parts of the log."""
        return Group(
            tuple(sorted({*self.members, *other.members})[:ENOUGH]),
            tuple(sorted({*self.prompts, *other.prompts})[:ENOUGH]),
            min(self.name, other.name),
        )

    @property
    def mixed(self) -> bool:
        """Whether one file has several prompts under this id; files may hash them differently."""
        files = [file for file, _ in self.prompts]
        return len(set(files)) < len(files)


@dataclass(frozen=True)
class Groups(Additive):
    """Groups by the key of their step and id.

    Args:
        rows: rows with a group id.
        table: key -> group.
    """

    rows: int
    table: dict[int, Group]


def groups(flat: Flat, rows: Bools) -> Groups | None:
    """Groups among the rows under `rows`; None without group ids.

    Ids may start anew in every step (`group_index`), so the step is part of the key; without steps
    it is the file. One response scored by several trainer versions is one member.
    """
    facts, ids = flat.rows, flat.rows.group_id
    if ids is None:
        return None
    step = flat.row_fact(facts.step)
    scope = mix(step.view(np.uint64))
    files = [bytes_hash(source.encode()) for source in facts.source or [""] * flat.n_rows]
    table: dict[int, Group] = {}
    counted = 0
    for row in np.flatnonzero(rows).tolist():
        name = ids[row]
        if name is None:
            continue
        counted += 1
        own = facts.row_id[row] if facts.row_id is not None else None
        member = bytes_hash((own if own is not None else f"{facts.place(row)} {row}").encode())
        prompt = 0 if facts.prompt_key is None else int(facts.prompt_key[row])
        key = bytes_hash(name.encode()) ^ int(scope[row])
        if step[row] == UNKNOWN:
            key ^= files[row]
        one = Group((member,), ((files[row], prompt),) if prompt else (), name)
        table[key] = table[key] + one if key in table else one
    return Groups(counted, table)
