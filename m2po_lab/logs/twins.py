"""The same rows dumped in two formats: they have no ids in common, so both are counted; say so."""

from collections.abc import Mapping, Sequence

import numpy as np

from m2po_lab.logs.errors import CONTENT_ERRORS
from m2po_lab.logs.hashing import Hashes, bytes_hash, mix, row_hashes
from m2po_lab.logs.reader import Notes, Reader, ReadOptions
from m2po_lab.logs.source import Source

SHARE = 0.5
"""Share of the shorter start that both have; honest rows agree to the last bit far less often."""

Group = tuple[Source, ...]


def twins(
    units: Mapping[str, tuple[Reader, Sequence[Group]]], options: ReadOptions
) -> dict[str, str]:
    """Compare the first files of the formats that one path holds.

    Args:
        units: format -> its reader, and its files as they are read together.
        options: how they will be read.

    Returns:
        Format that repeats an earlier one -> a sentence that says so.
    """
    known: dict[str, tuple[str, Hashes]] = {}
    found = {}
    for name, (reader, groups) in units.items():
        keys = _start(reader, groups[0], options) if len(units) > 1 and groups[0] else None
        if keys is None:
            continue
        column, values = keys
        for other, (its_column, its_values) in known.items():
            least = min(values.size, its_values.size)
            if column == its_column and np.intersect1d(values, its_values).size > SHARE * least:
                found[name] = (
                    f"{name} and {other} hold the same rows without a common id, so both are "
                    "counted; name the files of one of them, or choose with --format"
                )
        known[name] = keys
    return found


def _start(reader: Reader, group: Group, options: ReadOptions) -> tuple[str, Hashes] | None:
    """What tells rows apart, and its hash for the first ones; None where there is nothing such.

    Log-probs do, and a prompt with its response; token ids alone do not, short answers repeat.
    """
    try:
        batch = next(iter(reader.read(group, options, Notes())), None)
    except CONTENT_ERRORS:
        return None
    if batch is None or batch.lengths is None or batch.rows is None:
        return None
    if batch.behavior_logp is not None and np.isfinite(batch.behavior_logp).any():
        values = row_hashes({"behavior_logp": batch.behavior_logp}, batch.lengths)
        return "behavior_logp", np.unique(values[batch.lengths > 0])
    if batch.rows.prompt is None or batch.rows.response is None:
        return None
    texts = zip(batch.rows.prompt, batch.rows.response, strict=True)
    hashed = [[bytes_hash((text or "").encode()) for text in pair] for pair in texts]
    pairs = np.array(hashed, dtype=np.uint64).reshape(-1, 2)
    return "response", np.unique(mix(pairs[:, 0]) ^ pairs[:, 1])
