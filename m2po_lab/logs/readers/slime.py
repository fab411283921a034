"""slime and miles: `--save-debug-rollout-data` and `--save-debug-train-data`, joined by rollout.

Rollout dump: {"rollout_id", "samples"} (slime/observability/rollout_data_utils.py). Train dump v2:
{"format_version": 2, "samples", "raw_reward"} (train_data_utils.py). miles and older slime write a
file a rank, {"rollout_id", "rank", "rollout_data"} (miles/utils/train_dump_utils.py).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs import values
from m2po_lab.logs.archives import pickle_names
from m2po_lab.logs.batching import NumberedRow, batches
from m2po_lab.logs.reader import Notes, ReadOptions
from m2po_lab.logs.readers.base import has_length
from m2po_lab.logs.readers.slime_ranks import merged_ranks
from m2po_lab.logs.rows import UNKNOWN
from m2po_lab.logs.source import Source
from m2po_lab.logs.unpickle import load_torch

_START_BYTES = 400
_NUMBERS = re.compile(r"(\d+)(?:_(\d+))?$")
_OWN = {
    "behavior_logp": ("rollout_log_probs",),
    "proximal_logp": ("log_probs",),
    "current_logp": (),
    "keep": ("loss_masks", "loss_mask"),
    "token_ids": ("response_tokens",),
    "finish_reason": ("status",),
    "group_id": ("group_index",),
}
_MISSING = "--save-debug-train-data PATH (or --dump-details DIR) logs the trainer's log_probs too"
_NO_TRAIN_VERSION = "slime logs weight_versions but no trainer version: lag is not computed"


class Slime:
    """Train dumps, with what the rollout dump of the same rollout says about each sample."""

    name = "slime"

    def sniff(self, source: Source) -> bool:
        """A torch archive that starts with the keys of one of the three dumps."""
        return bool(_kind(source))

    def arrange(self, sources: Sequence[Source], notes: Notes) -> list[tuple[Source, ...]]:
        """Put all files of one rollout together; evaluation rollouts are left out."""
        groups: dict[tuple[str, str], list[Source]] = {}
        for source in sources:
            found = _NUMBERS.search(source.stem)
            if "eval" in source.stem:
                notes.remark(f"{source.address} is an evaluation rollout and is left out")
            elif found:
                number = found[1] if found[2] is None or _kind(source) == "ranks" else found[2]
                groups.setdefault(("rollout", str(int(number))), []).append(source)
            else:
                groups.setdefault(("file", source.path), []).append(source)
        return [tuple(group) for group in groups.values()]

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Read the files of one rollout."""
        held = []
        for source in sources:
            with source.open_seekable() as stream:
                held.append((source, load_torch(stream, source.address)))
        trained = [(s, h) for s, h in held if "format_version" in h or "rollout_data" in h]
        rollout = [(s, h) for s, h in held if "samples" in h and "format_version" not in h]
        samples = {k: v for _, dump in rollout for k, v in _by_index(dump["samples"]).items()}
        if samples:
            notes.remark(_NO_TRAIN_VERSION)
        for source, step, rows in _sets(trained, samples, notes) if trained else _texts(rollout):
            named = None if step is None else (int(step), "rollout_id")
            yield from batches(rows, source, options, notes, _OWN, _MISSING, named)


def _kind(source: Source) -> str:
    """Which of the three dumps a file is; empty if none."""
    if pickle_names(source, "rollout_data", within=_START_BYTES):
        return "ranks"
    if pickle_names(source, "format_version", "samples", within=_START_BYTES):
        return "train"
    return "rollout" if pickle_names(source, "rollout_id", "samples", within=_START_BYTES) else ""


def _by_index(samples: Sequence[Any]) -> dict[Any, dict[str, Any]]:
    """Samples of a rollout dump by their index."""
    found = (s for s in samples if isinstance(s, dict) and s.get("index") is not None)
    return {sample["index"]: sample for sample in found}


Part = tuple[Source, Any, Iterator[NumberedRow]]


def _sets(
    trained: Sequence[tuple[Source, Any]], samples: Mapping[Any, Any], notes: Notes
) -> Iterator[Part]:
    """Row sets of the train dumps."""
    whole = [(source, dump) for source, dump in trained if "format_version" in dump]
    ranks = [(source, dump) for source, dump in trained if "rollout_data" in dump]
    if whole and ranks:
        notes.remark("rank files are left out where a dump of the whole rollout is there")
        ranks = []
    for source, dump in whole:
        yield source, dump.get("rollout_id"), _flat_rows(dump, samples)
    for source, step, rows in merged_ranks(ranks, notes):
        numbered = ((i + 1, _joined(row, samples)) for i, row in enumerate(rows))
        yield source, step, numbered


def _flat_rows(dump: Mapping[str, Any], samples: Mapping[Any, Any]) -> Iterator[NumberedRow]:
    """Rows of a v2 dump; `raw_reward` is in rollout order, over the whole batch."""
    items = dump["samples"]
    raw: Any = dump.get("raw_reward")
    for i, item in enumerate(items):
        row = _joined(item, samples)
        position = item.get("rollout_position")
        position = i if position is None else int(position)
        if "reward" not in row and has_length(raw, len(items)) and position < len(items):
            row["reward"] = raw[position]
        yield i + 1, row


def _joined(item: Mapping[str, Any], samples: Mapping[Any, Any]) -> dict[str, Any]:
    """One sample of a train dump; `rewards` there are normalised, so they are left out."""
    row = {key: value for key, value in item.items() if key != "rewards"}
    row |= _response(item, item.get("response_lengths"))
    if item.get("truncated") is not None:
        row["status"] = "truncated" if item["truncated"] else "completed"
    index = item.get("sample_index")
    if index is not None:
        row["row_id"] = str(index)
        sample = samples.get(index, {})
        row |= {key: sample[key] for key in ("group_index", "status", "prompt") if key in sample}
        row |= {key: sample[key] for key in ("reward", "response") if key in sample}
        row["weight_versions"] = sample.get("weight_versions") or item.get("weight_versions")
    return row


def _texts(rollout: Sequence[tuple[Source, Any]]) -> Iterator[Part]:
    """Row sets of rollout dumps that have no train dump beside them."""
    for source, dump in rollout:
        yield source, dump.get("rollout_id"), _sample_rows(dump["samples"])


def _sample_rows(samples: Sequence[Any]) -> Iterator[NumberedRow]:
    """Rows of a rollout dump; a removed sample has no kept token."""
    for i, sample in enumerate(samples):
        if not isinstance(sample, dict):
            continue
        row = {**sample, **_response(sample, sample.get("response_length"))}
        if sample.get("index") is not None:
            row["row_id"] = str(sample["index"])
        if sample.get("remove_sample"):
            row["loss_mask"] = [0] * len(row.get("response_tokens", ()))
        yield i + 1, row


def _response(item: Mapping[str, Any], length: Any) -> dict[str, Any]:
    """Prompt and response part of a sample's tokens."""
    tokens: Any = item.get("tokens")
    n = values.integer(length)
    if not values.is_sequence(tokens) or n == UNKNOWN or n > len(tokens):
        return {}
    return {"prompt_ids": tokens[: len(tokens) - n], "response_tokens": tokens[len(tokens) - n :]}
