"""Logs whose columns are not what they seem: shifted, filled in, repeated, rounded."""

from typing import Any

import numpy as np

from tests.findings.synthetic import Columns, copied, make


def shifted(seed: int) -> Columns:
    """The trainer's columns belong to the token before."""
    c = make(seed)
    return c.with_(proximal=np.roll(c.proximal, 1), current=np.roll(c.current, 1))


def shifted_rows(seed: int) -> Columns:
    """One row in eight is off by one."""
    c = make(seed)
    off = c.row % 8 == 0
    return c.with_(proximal=np.where(off, np.roll(c.proximal, -1), c.proximal))


def mask_first(seed: int) -> Columns:
    """The mask includes the last prompt position, whose log-prob is 0.0."""
    c = make(seed)
    return c.with_(behavior=np.where(c.position == 0, 0.0, c.behavior))


def mask_all_columns(seed: int) -> Columns:
    """The same, with 0.0 in every column."""
    c = make(seed)
    blank = c.position == 0
    changed = {n: np.where(blank, 0.0, copied(c, n)) for n in ("behavior", "proximal", "current")}
    return c.with_(**changed)


def mask_uniform(seed: int) -> Columns:
    """The trainer's first log-prob is log(1/V)."""
    c = make(seed)
    first = c.position == 0
    value = -np.log(151936.0)
    return c.with_(
        proximal=np.where(first, value, c.proximal), current=np.where(first, value, c.current)
    )


def one_too_many(seed: int) -> Columns:
    """A quarter of the rows have a log-prob for the token after the last."""
    c = make(seed)
    rows = np.arange(c.lengths.size) % 4 == 0
    behavior = np.where(rows[c.row], np.nan, c.behavior)
    facts = {"length_difference": {"behavior_logp": rows.astype(np.int64)}, "unaligned": rows}
    return c.with_(behavior=behavior, facts=facts)


def retokenised(seed: int) -> Columns:
    """Two id columns disagree in five rows."""
    c = make(seed)
    return c.with_(facts={"retokenised": np.arange(c.lengths.size) < 5})


def only_behavior(seed: int) -> Columns:
    """The trainer logged nothing."""
    return make(seed).with_(proximal=None, current=None)


def tool_runs(seed: int) -> Columns:
    """Six tokens of tool output in every row."""
    c = make(seed)
    return c.with_(behavior=np.where((c.position >= 10) & (c.position < 16), 0.0, c.behavior))


def whole_rows_zero(seed: int) -> Columns:
    """A missing column became 0.0 in a quarter of the rows."""
    c = make(seed, proximal=False)
    return c.with_(behavior=np.where(c.row % 4 == 0, 0.0, c.behavior))


def fill_one(seed: int) -> Columns:
    """INVALID_LOGPROB on the last token."""
    c = make(seed)
    last = c.position == c.lengths[c.row] - 1
    return c.with_(behavior=np.where(last, 1.0, c.behavior))


def fill_9999(seed: int) -> Columns:
    """Fill values on a few tokens."""
    c = make(seed)
    return c.with_(behavior=np.where(np.arange(c.row.size) % 97 == 0, -9999.0, c.behavior))


def some_nan(seed: int) -> Columns:
    """The engine lost a log-prob here and there."""
    c = make(seed)
    return c.with_(behavior=np.where(np.arange(c.row.size) % 211 == 5, np.nan, c.behavior))


def empty(seed: int) -> Columns:
    """Three padding rows."""
    c = make(seed)
    return c.with_(keep=c.keep & (c.row >= 3))


def rank_copies(seed: int) -> Columns:
    """Two ranks wrote the same rows."""
    c = make(seed)
    token = {n: np.tile(copied(c, n), 2) for n in ("behavior", "proximal", "current", "keep")}
    rest = {n: np.tile(copied(c, n), 2) for n in ("advantage", "entropy", "version")}
    row = {n: np.tile(copied(c, n), 2) for n in ("lengths", "step", "train_version", "prompt_key")}
    assert c.row_id is not None
    assert c.group_id is not None
    return c.with_(**token, **rest, **row, row_id=c.row_id * 2, group_id=c.group_id * 2)


def padded_batch(seed: int) -> Columns:
    """The batch ends with its first four rows under new ids."""
    c = make(seed, steps=1)
    extra = 4
    tokens = int(c.lengths[:extra].sum())
    grown: dict[str, Any] = {
        n: np.concatenate([copied(c, n), copied(c, n)[:tokens]])
        for n in ("behavior", "proximal", "current", "keep", "advantage", "entropy", "version")
    }
    for n in ("lengths", "step", "train_version", "prompt_key"):
        grown[n] = np.concatenate([copied(c, n), copied(c, n)[:extra]])
    assert c.row_id is not None
    assert c.group_id is not None
    ids = [f"pad{i}" for i in range(extra)]
    return c.with_(**grown, row_id=c.row_id + ids, group_id=c.group_id + c.group_id[:extra])


def recomputed(seed: int) -> Columns:
    """The old log-probs are the current ones."""
    c = make(seed)
    return c.with_(current=copied(c, "proximal"))


def bypass(seed: int) -> Columns:
    """The old log-probs are the sampler's."""
    c = make(seed)
    return c.with_(proximal=copied(c, "behavior"))


def narrow(seed: int) -> Columns:
    """Logged in bfloat16."""
    return make(seed, grid="bfloat16")


def lone_groups(seed: int) -> Columns:
    """Every row has a group of its own."""
    c = make(seed)
    return c.with_(group_id=[f"g{i}" for i in range(c.lengths.size)])


def mixed_groups(seed: int) -> Columns:
    """Two prompts share a group."""
    c = make(seed)
    prompts = copied(c, "prompt_key")
    prompts[::4] += np.uint64(1000)
    return c.with_(prompt_key=prompts)
