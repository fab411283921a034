"""What each token of a response reads: as logged, or cut out of the text by logged offsets.

Nothing is guessed: a row whose texts or offsets do not fit its tokens one to one has none.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from m2po_lab.logs import values

Row = Mapping[str, Any]
LISTED = ("token_text", "token_ids", "behavior_logp")
"""Canonical fields that may hold the texts: a column of their own, tokens, engines' triples."""


def token_texts(records: Sequence[Row], lengths: Sequence[int]) -> list[list[str] | None] | None:
    """Texts of the response tokens of each row; None for a row, or all rows, without any."""
    found = [_texts(row, n) for row, n in zip(records, lengths, strict=True)]
    return found if any(texts is not None for texts in found) else None


def _texts(row: Row, n: int) -> list[str] | None:
    for name in LISTED:
        listed = _listed(row.get(name))
        if listed is not None and len(listed) >= n > 0:
            return [values.text(item) or "" for item in listed[len(listed) - n :]]
    return _cut(row, n) if n and "offsets" in row else None


def _listed(value: Any) -> Sequence[str] | None:
    """A list of texts, or the texts in a list of an engine's `[log-prob, id, text]`."""
    if not values.is_sequence(value):
        return None
    items = values.unwrapped(value)
    if not len(items) or (isinstance(items, np.ndarray) and items.dtype.kind not in "OU"):
        return None
    if not isinstance(items[0], str) and values.is_sequence(items[0]):
        items = [item[2] if values.is_sequence(item) and len(item) == 3 else None for item in items]
    return items if all(isinstance(item, str) for item in items) else None


def _cut(row: Row, n: int) -> list[str] | None:
    """Tokens cut out of the response by [start, end) of each, in characters.

    Offsets that cover the prompt as well count from its start, and the first one of the response
    must lie where the prompt ends.
    """
    response, prompt = values.text(row.get("response")), values.text(row.get("prompt")) or ""
    spans = row["offsets"]
    if response is None or not values.is_sequence(spans) or len(spans) < n:
        return None
    try:
        span = np.asarray([list(pair) for pair in spans], dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        return None
    if span.shape != (len(spans), 2):
        return None
    if len(span) > n:
        span = span[len(span) - n :]
        if span[0, 0] != len(prompt):
            return None
        span = span - len(prompt)
    ends = np.concatenate(([0], span.reshape(-1), [len(response)]))
    if (np.diff(ends) < 0).any():
        return None
    return [response[start:end] for start, end in span.tolist()]
