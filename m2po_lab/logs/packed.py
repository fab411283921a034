"""Packed rows of generic logs: several sequences end to end, told apart by where positions restart.

A pack that is read as one row mixes sequences into one product ratio, and counts the padding at
its end (xtuner#1788).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2po_lab.core.batch import LOGP_FIELDS
from m2po_lab.logs import values
from m2po_lab.logs.columns import SYNONYMS
from m2po_lab.logs.reader import Notes
from m2po_lab.logs.readers.base import has_length

BOUNDS = ("cu_seqlens", "cu_seq_lens", "cu_seqlens_q")
"""Starts of the sequences and the end of the last."""
LENGTHS = ("sequence_lengths", "seq_lens", "seqlens")
POSITIONS = "position_ids"
_SAYS = {POSITIONS, *BOUNDS, *LENGTHS}
_MASKS = SYNONYMS["keep"]
_LOGPS = tuple(name for role in LOGP_FIELDS for name in SYNONYMS[role])
_IDS = SYNONYMS["row_id"]

Segments = list[tuple[int, int]]


def unpacked(row: dict[str, Any], notes: Notes) -> Iterator[dict[str, Any]]:
    """Yield the sequences of a pack, or the row itself.

    Per-token lists are cut, lists with one entry a sequence dealt out, ids numbered. What the
    positions call padding is left out; so is a last segment whose log-probs are all exactly 0.0.
    A row whose log-prob columns have other lengths is left whole: `length-mismatch` speaks of it.
    """
    if _SAYS.isdisjoint(row):
        yield row
        return
    width = _width(row)
    found = _segments(row, width) if width else []
    if len(found) > 1 and _is_blank(row, *found[-1], width):
        found.pop()
    if not found or (len(found) == 1 and (found[0] == (0, width) or _has_mask(row))):
        yield row
        return
    if len(found) > 1:
        notes.remark("packed rows are split into their sequences, where positions restart")
    for number, (start, stop) in enumerate(found):
        part = {}
        for key, value in row.items():
            if key in _SAYS:
                continue
            if has_length(value, width):
                value = value[start:stop]
            elif len(found) > 1 and has_length(value, len(found)):
                value = value[number]
            elif key in _IDS and value is not None and len(found) > 1:
                value = f"{value}/{number}"
            part[key] = value
        yield part


def _width(row: Mapping[str, Any]) -> int:
    """Tokens of the row; 0 if its log-prob columns do not agree on that."""
    lengths = {len(row[name]) for name in _LOGPS if values.is_sequence(row.get(name))}
    return lengths.pop() if len(lengths) == 1 else 0


def _segments(row: Mapping[str, Any], width: int) -> Segments:
    """Stretches of the sequences that are no padding."""
    for name in BOUNDS:
        bounds = _integers(row.get(name))
        if bounds is not None and bounds.size > 2 and bounds[0] == 0 and bounds[-1] <= width:
            return _stretches(bounds)
    for name in LENGTHS:
        lengths = _integers(row.get(name))
        if lengths is not None and lengths.size > 1 and lengths.sum() <= width:
            return _stretches(np.append(0, np.cumsum(lengths)))
    positions = _integers(row.get(POSITIONS))
    if positions is None or positions.size != width:
        return []
    restarts = np.flatnonzero(np.diff(positions) <= 0) + 1
    parts = _stretches(np.concatenate(([0], restarts, [width])))
    return [(start, stop) for start, stop in parts if stop - start > 1] if restarts.size else []


def _stretches(bounds: NDArray[np.int64]) -> Segments:
    pairs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    return [(start, stop) for start, stop in pairs if stop > start]


def _integers(value: Any) -> NDArray[np.int64] | None:
    """A list of whole numbers of at least 0, else None."""
    if not values.is_sequence(value) or not len(value):
        return None
    numbers = values.numbers(value).values
    if not np.isfinite(numbers).all() or (numbers < 0).any() or (numbers % 1).any():
        return None
    return numbers.astype(np.int64)


def _is_blank(row: Mapping[str, Any], start: int, stop: int, width: int) -> bool:
    """Whether every log-prob column is exactly 0.0 there."""
    columns = [row[name] for name in _LOGPS if has_length(row.get(name), width)]
    return all((values.numbers(column).values[start:stop] == 0.0).all() for column in columns)


def _has_mask(row: Mapping[str, Any]) -> bool:
    return any(values.is_sequence(row.get(name)) for name in _MASKS)
