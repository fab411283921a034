"""Rank files of miles and older slime -> whole rows, whatever the parallelism.

Tensor-parallel ranks hold copies of each other; only the last pipeline stage has `log_probs`; with
context parallelism each rank holds two slices of every per-token list ("zig-zag").
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from m2po_lab.logs.reader import Notes
from m2po_lab.logs.readers.base import columnar
from m2po_lab.logs.source import Source

SLICED = ("log_probs", "rollout_log_probs", "advantages", "entropy", "returns")
"""Per-token lists that a context-parallel rank holds its slices of; masks and tokens are whole."""

Shard = tuple[Source, Mapping[str, Any]]


def merged_ranks(
    shards: Sequence[Shard], notes: Notes
) -> Iterator[tuple[Source, Any, list[dict[str, Any]]]]:
    """Yield (source, rollout number, rows) for the rank files of one rollout.

    Copies with log-probs are all given, so that the check for duplicates counts them; stages
    without log-probs are left out beside one with them.
    """
    for number, group in enumerate(_replicas(shards)):
        places = _context_places(group)
        if places is not None:
            source, dump = group[0]
            notes.remark(f"{len(group)} context-parallel rank files of a rollout joined into one")
            if missing := set(range(places[0])) - set(places[1]):
                notes.remark(f"{source.address}: context-parallel ranks {missing} are missing")
            yield source, dump.get("rollout_id"), _whole_rows(group, *places)
            continue
        scored = [shard for shard in group if shard[1]["rollout_data"].get("log_probs") is not None]
        if scored and len(scored) < len(group):
            notes.remark("rank files of pipeline stages without log-probs are left out")
        for source, dump in scored or group[:1]:
            yield source, dump.get("rollout_id"), _named(_rows(dump), number, group)


def _replicas(shards: Sequence[Shard]) -> list[list[Shard]]:
    """Groups of files that hold the same samples.

    `raw_reward` covers the whole batch, so it tells how many files hold each sample: files that are
    equal by chance (the same short answers on two data-parallel ranks) are no replicas.
    """
    ordered = sorted(shards, key=lambda shard: int(shard[1].get("rank") or 0))
    alike: dict[tuple[Any, ...], list[Shard]] = {}
    for shard in ordered:
        alike.setdefault(_samples(shard[1]["rollout_data"]), []).append(shard)
    copies = _copies(ordered)
    groups = []
    for files in alike.values():
        size = copies if copies and len(files) % copies == 0 else len(files)
        groups += [files[i : i + size] for i in range(0, len(files), size)]
    return groups


def _copies(shards: Sequence[Shard]) -> int:
    """Files that hold each sample, from the size of the whole batch; 0 where it is not known."""
    batch = {len(dump["rollout_data"].get("raw_reward") or ()) for _, dump in shards}
    total = sum(_count(dump["rollout_data"]) for _, dump in shards)
    if len(batch) != 1 or 0 in batch or total % (size := batch.pop()):
        return 0
    return total // size


def _count(data: Mapping[str, Any]) -> int:
    """Samples in one rank file."""
    return len(data.get("response_lengths") or data.get("tokens") or ())


def _named(rows: list[dict[str, Any]], number: int, group: Sequence[Shard]) -> list[dict[str, Any]]:
    """Rows with an identity, where the size of the batch tells replicas from equal shards."""
    if group[0][1]["rollout_data"].get("raw_reward"):
        for i, row in enumerate(rows):
            row["row_id"] = f"shard{number}/{i}"
    return rows


def _samples(data: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells whether two rank files hold the same samples: their indices, else their tokens."""
    indices = data.get("sample_indices")
    if indices is not None:
        return tuple(int(i) for i in indices)
    return tuple(np.asarray(tokens).tobytes() for tokens in data.get("tokens") or ())


def _rows(dump: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of one rank file; what belongs to the whole batch is left out."""
    data = {k: v for k, v in dump["rollout_data"].items() if k not in ("raw_reward", "rewards")}
    rows = list(columnar(data, _count(data)))
    for row in rows:
        row["sample_index"] = row.pop("sample_indices", None)
    return rows


def _context_places(group: Sequence[Shard]) -> tuple[int, list[int]] | None:
    """Size of the context-parallel group and each file's place in it; None without slices."""
    size = int(group[0][1].get("cp_size") or 0)
    if size > 1:
        return size, [int(dump.get("cp_rank") or 0) for _, dump in group]
    if size == 1:
        return None
    return _inferred_places(group)


def _inferred_places(group: Sequence[Shard]) -> tuple[int, list[int]] | None:
    """Places from the slices themselves, for dumps that do not state them.

    Distinct slices in rank order are ranks 0, 1, ...; if their lengths are not those of the zig-zag
    layout the files stay as they are, and their lists show as too short.
    """
    distinct: list[Any] = []
    places = []
    for _, dump in group:
        column = dump["rollout_data"].get("rollout_log_probs")
        if not column:
            return None
        content = [np.asarray(values).tobytes() for values in column]
        if content not in distinct:
            distinct.append(content)
        places.append(distinct.index(content))
    size = len(distinct)
    if size < 2:
        return None
    for (_, dump), place in zip(group, places, strict=True):
        data = dump["rollout_data"]
        for i, values in enumerate(data["rollout_log_probs"]):
            spans = slices(data["total_lengths"][i], data["response_lengths"][i], place, size)
            if sum(stop - start for start, stop in spans) != len(values):
                return None
    return size, places


def slices(
    total: int, response: int, rank: int, size: int, padded: int | None = None
) -> list[tuple[int, int]]:
    """The two runs of response positions that a context-parallel rank scores.

    The sequence is cut into 2 * size chunks; rank r holds chunks r and 2 * size - 1 - r. The
    log-prob of a token is computed one position before it, hence the shift by one.

    Args:
        total: tokens of prompt and response.
        response: tokens of the response.
        rank: place in the context-parallel group.
        size: ranks in the group.
        padded: length that sequences were padded to before cutting ("bshd"), or None.
    """
    prompt = total - response
    chunk = ((padded or total) + 2 * size - 1) // (2 * size)
    spans = []
    for place in (rank, 2 * size - 1 - rank):
        start = max(place * chunk, prompt - 1) - (prompt - 1)
        stop = min((place + 1) * chunk, total - 1) - (prompt - 1)
        spans.append((start, max(start, stop)))
    return spans


def _whole_rows(group: Sequence[Shard], size: int, places: Sequence[int]) -> list[dict[str, Any]]:
    """Rows with the slices of all ranks put together; what no rank gave is NaN."""
    by_rank = [_rows(dump) for _, dump in group]
    bshd = group[0][1].get("qkv_format") == "bshd"
    rows = [dict(row) for row in by_rank[0]]
    for i, row in enumerate(rows):
        total, response = int(row["total_lengths"]), int(row["response_lengths"])
        padded = int(row["max_seq_lens"]) if bshd and "max_seq_lens" in row else None
        for name in SLICED:
            given = [
                (p, ranked[i][name])
                for p, ranked in zip(places, by_rank, strict=True)
                if ranked[i].get(name) is not None
            ]
            if given:
                row[name] = _put_together(given, total, response, size, padded)
    return rows


def _put_together(
    given: Sequence[tuple[int, Any]], total: int, response: int, size: int, padded: int | None
) -> Any:
    """One per-token list from the slices of the ranks, later copies of a rank ignored."""
    whole = np.full(response, np.nan)
    done = set()
    for place, values in given:
        spans = slices(total, response, place, size, padded)
        if place in done or sum(stop - start for start, stop in spans) != len(values):
            continue
        done.add(place)
        taken = 0
        for start, stop in spans:
            whole[start:stop] = values[taken : taken + stop - start]
            taken += stop - start
    return whole
