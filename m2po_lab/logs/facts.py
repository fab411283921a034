"""Per-row facts of canonical rows: identity, step, reward, text, token ids, re-encoded rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2po_lab.core.batch import LOGP_FIELDS
from m2po_lab.logs import values
from m2po_lab.logs.hashing import Hashes, bytes_hash, mix
from m2po_lab.logs.rows import UNKNOWN, Bools, Ints

Row = Mapping[str, Any]
OTHER_IDS = "other_ids"
"""Canonical key for further id columns of a row: a list of lists."""


def _logp_length(row: Row) -> int | None:
    """Length that the log-prob columns agree on, or None."""
    found = {
        len(values.unwrapped(row[name]))
        for name in LOGP_FIELDS
        if name in row and values.is_sequence(row[name])
    }
    return found.pop() if len(found) == 1 else None


def tokens_in_response(row: Row) -> int:
    """Tokens of the response: all of `token_ids`, unless the row shows that the prompt is in it.

    It is shown if the log-probs are shorter by exactly the prompt (whose length the row gives), or
    have exactly the response length that the row gives.
    """
    tokens = row["token_ids"]
    if not values.is_sequence(tokens):
        return 0
    n, m = len(values.unwrapped(tokens)), _logp_length(row)
    if m is None or m >= n:
        return n
    prompt = values.integer(row.get("prompt_length"))
    if prompt == UNKNOWN and values.is_sequence(row.get("prompt_ids")):
        prompt = len(values.unwrapped(row["prompt_ids"]))
    if n - prompt == m or values.integer(row.get("response_length")) == m:
        return m
    return n


def one_turn_versions(row: Row) -> Row:
    """Give every token its version where the log has one version a turn.

    Turns are the runs of kept tokens; tokens before a turn (tool output) take the version of the
    turn they precede. If turns and versions do not match one to one the versions stay as they are.
    """
    versions, keep = row.get("version"), row.get("keep")
    if not values.is_sequence(versions) or not values.is_sequence(keep):
        return row
    kept = values.mask(keep)
    versions = values.unwrapped(versions)
    if len(versions) == len(kept) or len(versions) < 2:
        return row
    begins = kept & ~np.concatenate([[False], kept[:-1]])
    if int(begins.sum()) != len(versions):
        return row
    turn = np.maximum(np.cumsum(begins) - 1, 0)
    return {**row, "version": [versions[i] for i in turn]}


def token_ids(records: Sequence[Row], lengths: Ints) -> Ints | None:
    """Ids of the response tokens, flat; -1 where a row has none; None if no row has any."""
    out = np.full(int(lengths.sum()), -1, dtype=np.int64)
    start, seen = 0, False
    for row, n in zip(records, lengths.tolist(), strict=True):
        ids = values.flat_ids(row.get("token_ids"))
        if ids is not None and len(ids) >= n > 0:
            out[start : start + n] = ids[len(ids) - n :]
            seen = True
        start += n
    return out if seen else None


def retokenised(records: Sequence[Row]) -> Bools | None:
    """Rows with a further id column that is neither equal to the tokens nor contains them.

    None if no row has a second id column.
    """
    if not any(OTHER_IDS in row for row in records):
        return None
    return np.array([_ids_disagree(row) for row in records], dtype=np.bool_)


def _ids_disagree(row: Row) -> bool:
    """Whether one of the further id columns shows other tokens."""
    ids = values.flat_ids(row.get("token_ids"))
    if ids is None:
        return False
    others = [found for o in row.get(OTHER_IDS, ()) if (found := values.flat_ids(o)) is not None]
    return any(not (_holds(other, ids) or _holds(ids, other)) for other in others)


def _holds(longer: NDArray[np.int64], ids: NDArray[np.int64]) -> bool:
    """Whether `ids` stand in `longer` as one piece (a prompt before, padding behind)."""
    n, extra = len(ids), len(longer) - len(ids)
    if extra < 0 or n == 0:
        return n == 0
    starts = np.flatnonzero(longer[: extra + 1] == ids[0])
    return any(bool((longer[s : s + n] == ids).all()) for s in starts.tolist())


def prompt_key(row: Row) -> int:
    """Hash of the prompt ids, else of the prompt text; 0 if the row has neither."""
    ids = values.flat_ids(row.get("prompt_ids"))
    if ids is not None and len(ids):
        return bytes_hash(ids.tobytes())
    prompt = values.text(row.get("prompt"))
    return bytes_hash(prompt.encode()) if prompt else 0


def _response_length(row: Row, n: int) -> tuple[int, bool]:
    """Length of the response and whether it is in tokens."""
    stated = values.integer(row.get("response_length"))
    if stated >= 0:
        return stated, True
    if n:
        return n, True
    response = values.text(row.get("response"))
    return (len(response), False) if response is not None else (UNKNOWN, True)


def _prompt_length(row: Row) -> int:
    """Prompt tokens, stated or counted."""
    stated = values.integer(row.get("prompt_length"))
    if stated == UNKNOWN and values.is_sequence(row.get("prompt_ids")):
        return len(values.unwrapped(row["prompt_ids"]))
    return stated


def _step(row: Row, file_step: int | None) -> int:
    """The row's step, else the file's, else the trainer version."""
    own = values.integer(row.get("step"))
    if own != UNKNOWN:
        return own
    return file_step if file_step is not None else values.integer(row.get("train_version"))


def _labels(records: Sequence[Row], name: str) -> list[str | None] | None:
    """A column of texts; None if no row has it."""
    if not any(name in row for row in records):
        return None
    return [values.label(row.get(name)) for row in records]


def _texts(records: Sequence[Row], name: str) -> list[str | None] | None:
    """A column of free text; None if no row has it."""
    found = [values.text(row.get(name)) for row in records]
    return found if any(text is not None for text in found) else None


def _integers(records: Sequence[Row], name: str) -> Ints | None:
    """A column of integers; None if no row has it."""
    found = np.array([values.integer(row.get(name)) for row in records], dtype=np.int64)
    return found if (found != UNKNOWN).any() else None


def _row_advantages(records: Sequence[Row]) -> NDArray[np.float64] | None:
    """Advantages of whole responses; None if no row has a single one."""
    found = [values.real(row.get("advantage")) for row in records]
    return None if all(np.isnan(found)) else np.array(found, dtype=np.float64)


def per_row(records: Sequence[Row], lengths: Ints, file_step: int | None) -> dict[str, Any]:
    """The per-row fields of Rows that need no token array."""
    reward = np.array([values.real(row.get("reward")) for row in records], dtype=np.float64)
    step = np.array([_step(row, file_step) for row in records], dtype=np.int64)
    prompts = np.array([_prompt_length(row) for row in records], dtype=np.int64)
    keys = np.array([prompt_key(row) for row in records], dtype=np.uint64)
    sized = [_response_length(row, n) for row, n in zip(records, lengths.tolist(), strict=True)]
    return {
        "row_id": _labels(records, "row_id"),
        "group_id": _labels(records, "group_id"),
        "finish_reason": _labels(records, "finish_reason"),
        "prompt": _texts(records, "prompt"),
        "response": _texts(records, "response"),
        "step": step if (step != UNKNOWN).any() else None,
        "mini_batch": _integers(records, "mini_batch"),
        "train_version": _integers(records, "train_version"),
        "advantage": _row_advantages(records),
        "reward": reward if any("reward" in row for row in records) else None,
        "prompt_key": keys if keys.any() else None,
        "prompt_length": prompts if (prompts != UNKNOWN).any() else None,
        "response_length": np.array([n for n, _ in sized], dtype=np.int64),
        "length_unit": "tokens" if all(unit for _, unit in sized) else "characters",
    }


def text_hashes(fields: Mapping[str, Any]) -> Hashes:
    """(B,) hash of the prompt, response text and reward, to join the hash of the tokens."""
    n = len(fields["response_length"])
    total = np.zeros(n, dtype=np.uint64)
    if fields["prompt_key"] is not None:
        total ^= mix(fields["prompt_key"])
    if fields["response"] is not None:
        texts = [bytes_hash((t or "").encode()) for t in fields["response"]]
        total ^= np.array(texts, dtype=np.uint64)
    if fields["reward"] is not None:
        total ^= mix(fields["reward"].view(np.uint64) + np.uint64(1))
    return total
