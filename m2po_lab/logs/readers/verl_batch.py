"""verl batches: DataProto pickles (`*.dp`) and the v1 TransferQueue cache (`tq_batch.pt`).

DataProto's state is (torch.save bytes or encoded arrays, per-row objects, meta_info)
(verl/protocol.py); the cache is a torch.save of jagged tensors with keys and tags.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.archives import pickle_names
from m2po_lab.logs.batching import NumberedRow, batches
from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.inert import Inert
from m2po_lab.logs.reader import Notes, OneByOne, ReadOptions
from m2po_lab.logs.readers.base import has_length
from m2po_lab.logs.source import Source
from m2po_lab.logs.tensors import from_bytes
from m2po_lab.logs.unpickle import load_pickle, load_torch

_KEY = re.compile(r"^(.+)_\d+_\d+$")
_OWN = {
    "token_ids": ("responses",),
    "reward": ("reward",),
    "entropy": ("entropys", "entropy"),
    "response": (),
}
_SCORES = ("token_level_scores", "token_level_rewards", "rm_scores")
_MISSING = (
    "actor_rollout_ref.rollout.calculate_log_probs=True logs rollout_log_probs; old_log_probs are "
    "there if the batch is saved after that stage"
)


class VerlDataProto(OneByOne):
    """A pickled DataProto: padded tensors, prompts on the left, responses on the right."""

    name = "verl-dataproto"

    def sniff(self, source: Source) -> bool:
        """A pickle of verl's DataProto."""
        return source.head[:1] == b"\x80" and b"verl.protocol" in source.head[:4096]

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Read one file."""
        (source,) = sources
        with source.open() as stream:
            proto = load_pickle(stream, source.address)
        state = proto.state if isinstance(proto, Inert) else None
        if not isinstance(state, tuple) or len(state) != 3:
            raise UnreadableLogError(source.address, "is no DataProto", "choose it with --format")
        tensors = _tensors(state[0], source.address)
        rows = padded_rows(tensors, state[1] or {})
        steps = (state[2] or {}).get("global_steps") if isinstance(state[2], dict) else None
        step = None if steps is None else (int(steps), "meta_info.global_steps")
        yield from batches(rows, source, options, notes, _OWN, _MISSING, step)


def _tensors(stored: Any, address: str) -> dict[str, Any]:
    """The tensors of a DataProto, stored as torch.save bytes or as encoded arrays."""
    if isinstance(stored, bytes):
        held = load_torch(stored, address)
        return held if isinstance(held, dict) else {}
    if isinstance(stored, tuple) and len(stored) == 3 and isinstance(stored[2], dict):
        return {key: _decoded(item) for key, item in stored[2].items()}
    return {}


def _decoded(item: Any) -> Any:
    """One tensor of verl's numpy serialization: (dtype, shape, bytes), or (layout, list)."""
    if len(item) == 2:
        return [_decoded(piece) for piece in item[1]]
    dtype, shape, data = item
    raw = data.tobytes() if isinstance(data, np.ndarray) else bytes(data)
    return from_bytes(raw, str(dtype), tuple(getattr(shape, "args", (shape,))[0]))


def padded_rows(tensors: Mapping[str, Any], others: Mapping[str, Any]) -> Iterator[NumberedRow]:
    """Rows of a padded batch: the response part of every response-wide tensor, padding cut off.

    Where the attention mask is absent the response ends with its last unmasked token.
    """
    wide = {name: v for name, v in tensors.items() if getattr(v, "ndim", 0) == 2}
    known = (wide.get(name) for name in ("responses", "response_mask", "rollout_log_probs"))
    width = next((tensor.shape[1] for tensor in known if tensor is not None), 0)
    padded = {name: v for name, v in wide.items() if v.shape[1] == width}
    count = next((len(v) for v in tensors.values()), 0)
    single = {k: v for k, v in {**tensors, **others}.items() if k not in wide}
    for i in range(count):
        length = _response_length(i, width, wide)
        row = {name: values[i, :length] for name, values in padded.items()}
        if "prompts" in wide:
            row["prompt_ids"] = _prompt(i, width, wide)
        row.update({k: v[i] for k, v in single.items() if has_length(v, count)})
        if (scores := next((row[n] for n in _SCORES if n in row), None)) is not None:
            row["reward"] = float(np.sum(scores))
        yield i + 1, row


def _response_length(i: int, width: int, wide: Mapping[str, Any]) -> int:
    """Tokens of a response before its padding."""
    attention = wide.get("attention_mask")
    if attention is not None and attention.shape[1] >= width:
        return int(np.sum(attention[i, attention.shape[1] - width :] != 0))
    if "response_mask" not in wide:
        return width
    kept = np.flatnonzero(wide["response_mask"][i])
    return int(kept[-1]) + 1 if len(kept) else 0


def _prompt(i: int, width: int, wide: Mapping[str, Any]) -> Any:
    """Ids of a prompt without the padding on its left."""
    prompt, attention = wide["prompts"][i], wide.get("attention_mask")
    if attention is None or attention.shape[1] != len(prompt) + width:
        return prompt
    return prompt[attention[i, : len(prompt)] != 0]


class VerlTransferQueue(OneByOne):
    """The v1 cache: jagged tensors, keys `prompt_rollout_output`, tags with the policy's steps."""

    name = "verl-transferqueue"

    def sniff(self, source: Source) -> bool:
        """A torch archive with a tensordict, tags and keys."""
        return pickle_names(source, "tensordict", "tags", "keys")

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Read one file."""
        (source,) = sources
        with source.open_seekable() as stream:
            held = load_torch(stream, source.address)
        step = held.get("global_steps")
        named = _directory_step(source) if step is None else (int(step), "global_steps")
        rows = _queue_rows(held, step)
        yield from batches(rows, source, options, notes, _OWN, _MISSING, named)


def _directory_step(source: Source) -> tuple[int, str] | None:
    """Step of a cache in `{step}/{part}/`."""
    folders = source.folders
    if len(folders) > 1 and folders[0].isdecimal() and folders[1].isdecimal():
        return int(folders[1]), "directory name"
    return None


def _queue_rows(held: Mapping[str, Any], step: Any) -> Iterator[NumberedRow]:
    """Rows of a cache; a row whose first and last policy step agree has that version."""
    tensors, keys = held["tensordict"], held.get("keys") or []
    tags = held.get("tags") or []
    for i in range(len(keys)):
        row = {k: v[i] for k, v in tensors.items() if has_length(v, len(keys))}
        key = str(keys[i])
        found = _KEY.match(key)
        row |= {"row_id": key, "uid": found[1] if found else key, "train_version": step}
        tag = tags[i] if i < len(tags) and isinstance(tags[i], dict) else {}
        low, high = tag.get("min_global_steps"), tag.get("max_global_steps")
        row["version"] = low if low is not None and low == high else None
        if (scores := next((row[n] for n in _SCORES if n in row), None)) is not None:
            row["reward"] = float(np.sum(scores))
        yield i + 1, row
