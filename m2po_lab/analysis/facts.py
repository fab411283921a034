"""What a log says about rows beside log-probs: rewards, lengths, groups, entropy, signal."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from m2po_lab.analysis.bins import Array, Bools, Floats, Ints
from m2po_lab.analysis.bootstrap import hash_texts, splitmix64
from m2po_lab.analysis.cells import codes_of
from m2po_lab.analysis.chunk import Chunk, as_numpy
from m2po_lab.analysis.grouped import weighted_count
from m2po_lab.analysis.keyed import COUNT, HIGHEST, LOWEST, TOTAL, Column, Keyed
from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.rows import UNKNOWN, Rows

STEP = {
    "rows": COUNT,
    "tokens": COUNT,
    "entropy_n": COUNT,
    "entropy": TOTAL,
    "advantage_n": COUNT,
    "advantage_nonzero": COUNT,
    "reward_n": COUNT,
    "reward": TOTAL,
    "reward_square": TOTAL,
    "reward_low": LOWEST,
    "reward_high": HIGHEST,
}
"""By step: tokens are kept ones, rows those with one."""
LENGTH = {"n": COUNT, "length": TOTAL, "length_square": TOTAL, "length_high": HIGHEST}
"""By finish reason and by lag of the row: response lengths."""
GROUP = {
    "rows": COUNT,
    "reward_n": COUNT,
    "reward_low": LOWEST,
    "reward_high": HIGHEST,
    "prompt_low": Column(2**64 - 1, np.minimum, np.uint64),
    "prompt_high": Column(0, np.maximum, np.uint64),
}
"""By group within its step, keyed by a hash."""
MOST_GROUPS = 1 << 17
"""More groups are thinned by their hash: 2 in 4, 4 in 8, ... stay, and the report says so."""


@dataclass(eq=False)
class Facts:
    """Additive facts about rows.

    Attributes:
        steps: by step (UNKNOWN where a row has none).
        finish: lengths by finish reason ("" where a row has none).
        lags: lengths by the lag of a row's first kept token.
        groups: by group.
        group_level: only groups whose hash ends in that many zero bits are kept.
        by_group_id: group ids were there; else groups are rows with the same prompt.
        length_unit: "tokens" or "characters"; None before the first row.
    """

    steps: Keyed = field(default_factory=lambda: Keyed(STEP))
    finish: Keyed = field(default_factory=lambda: Keyed(LENGTH))
    lags: Keyed = field(default_factory=lambda: Keyed(LENGTH))
    groups: Keyed = field(default_factory=lambda: Keyed(GROUP))
    group_level: int = 0
    by_group_id: bool = False
    length_unit: str | None = None

    def absorb(self, other: "Facts") -> None:
        """Add the facts of another log."""
        for name in ("steps", "finish", "lags", "groups"):
            getattr(self, name).absorb(getattr(other, name))
        self.group_level = max(self.group_level, other.group_level)
        self.by_group_id = self.by_group_id or other.by_group_id
        self.length_unit = self.length_unit or other.length_unit
        self._thin()

    def add(self, batch: TokenBatch, chunk: Chunk) -> None:
        """Add the rows of a batch; `chunk` holds its kept tokens.

        Rows without a kept token count nowhere, unless the batch holds no tokens (text only).
        """
        facts: Rows = batch.rows if batch.rows is not None else Rows()
        counts = np.bincount(chunk.row, minlength=chunk.n_rows)
        live = counts > 0 if batch.shape[0] else np.ones(batch.n_rows, dtype=np.bool_)
        if not live.any():
            return
        reward = np.full(batch.n_rows, np.nan) if facts.reward is None else facts.reward
        self._add_steps(chunk, live, counts, np.asarray(reward, dtype=np.float64))
        self._add_lengths(facts, chunk, live, counts)
        self._add_groups(facts, chunk, live, np.asarray(reward, dtype=np.float64))

    def _add_steps(self, chunk: Chunk, live: Bools, counts: Ints, reward: Floats) -> None:
        keys, code = codes_of(chunk.step[live])
        token_code = np.zeros(chunk.n_rows, dtype=np.int64)
        token_code[live] = code
        values = _reward_sums(reward[live], code, len(keys))
        values["rows"] = np.bincount(code, minlength=len(keys))
        values["tokens"] = weighted_count(code, counts[live].astype(np.float64), len(keys)).astype(
            np.int64
        )
        owner = token_code[chunk.row]
        for name, column in (("entropy", "entropy"), ("advantage", "advantage")):
            if column in chunk.columns:
                known = np.isfinite(chunk.columns[column])
                found, at = chunk.columns[column][known], owner[known]
                values[f"{name}_n"] = np.bincount(at, minlength=len(keys))
                if name == "entropy":
                    values["entropy"] = weighted_count(at, found, len(keys))
                else:
                    values["advantage_nonzero"] = np.bincount(at[found != 0], minlength=len(keys))
        self.steps.add(keys, values)

    def _add_lengths(self, facts: Rows, chunk: Chunk, live: Bools, counts: Ints) -> None:
        logged = counts if facts.response_length is None else facts.response_length
        length = np.where(logged == UNKNOWN, counts, logged)[live].astype(np.float64)
        self.length_unit = self.length_unit or (
            facts.length_unit if facts.response_length is not None else "tokens"
        )
        reasons = facts.finish_reason or [None] * chunk.n_rows
        chosen = [reasons[i] or "" for i in np.flatnonzero(live)]
        names = sorted(set(chosen))
        table = {name: i for i, name in enumerate(names)}
        self._length(self.finish, names, np.asarray([table[n] for n in chosen]), length)
        first = np.flatnonzero(np.diff(chunk.row, prepend=-1))
        lag = np.full(chunk.n_rows, UNKNOWN)
        lag[chunk.row[first]] = chunk.lag[first]
        known = lag[live] != UNKNOWN
        keys, code = codes_of(lag[live][known])
        self._length(self.lags, keys, code, length[known])

    def _length(self, table: Keyed, keys: list[Any], code: Ints, length: Floats) -> None:
        high = np.full(len(keys), -np.inf)
        np.maximum.at(high, code, length)
        values = {
            "n": np.bincount(code, minlength=len(keys)),
            "length": weighted_count(code, length, len(keys)),
            "length_square": weighted_count(code, length * length, len(keys)),
            "length_high": high,
        }
        if keys:
            table.add(keys, values)

    def _add_groups(self, facts: Rows, chunk: Chunk, live: Bools, reward: Floats) -> None:
        prompt = as_numpy(
            np.zeros(chunk.n_rows) if facts.prompt_key is None else facts.prompt_key, np.uint64
        )
        if facts.group_id is not None:
            own, known = hash_texts(facts.group_id), [g is not None for g in facts.group_id]
            self.by_group_id = True
        else:
            own, known = prompt, (prompt != 0).tolist()
        use = live & np.asarray(known, dtype=np.bool_)
        if not use.any():
            return
        key = splitmix64(own ^ splitmix64(chunk.step.astype(np.uint64)))[use]
        distinct, code = np.unique(key, return_inverse=True)
        values = _reward_sums(reward[use], code, len(distinct))
        low, high = GROUP["prompt_low"].blank(len(distinct)), np.zeros(len(distinct), np.uint64)
        some = prompt[use] != 0
        np.minimum.at(low, code[some], prompt[use][some])
        np.maximum.at(high, code[some], prompt[use][some])
        values |= {"rows": np.bincount(code), "prompt_low": low, "prompt_high": high}
        self.groups.add(distinct.tolist(), {name: values[name] for name in GROUP})
        self._thin()

    def _thin(self) -> None:
        """Drop groups by their hash until no more than `MOST_GROUPS` are left."""
        while len(self.groups) > MOST_GROUPS or self.group_level:
            mask = (1 << self.group_level) - 1
            chosen = [key for key in self.groups.keys if not key & mask]
            if len(chosen) < len(self.groups):
                self.groups = self.groups.take(chosen)
            if len(self.groups) <= MOST_GROUPS:
                return
            self.group_level += 1


def _reward_sums(reward: Floats, code: Ints, size: int) -> dict[str, Array]:
    known = np.isfinite(reward)
    value, at = reward[known], code[known]
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, at, value)
    np.maximum.at(high, at, value)
    return {
        "reward_n": np.bincount(at, minlength=size),
        "reward": weighted_count(at, value, size),
        "reward_square": weighted_count(at, value * value, size),
        "reward_low": low,
        "reward_high": high,
    }
