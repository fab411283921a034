"""SkyRL `dump_data_batch`: a pickled TrainingInputBatch, left-padded, response-wide tensors.

Class and schema: skyrl/backends/skyrl_train/training_batch.py; a tensor is {"format": "numpy",
"data", "dtype", "shape"} or {"format": "torch", "data"} for bfloat16.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.batching import NumberedRow, batches
from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.inert import Inert
from m2po_lab.logs.reader import Notes, OneByOne, ReadOptions
from m2po_lab.logs.readers.base import has_length, kept_part
from m2po_lab.logs.source import Source
from m2po_lab.logs.tensors import from_bytes
from m2po_lab.logs.unpickle import load_pickle, load_torch

_OWN = {
    "keep": ("loss_mask", "response_mask"),
    "token_ids": ("response_tokens",),
    "reward": ("reward",),
    "group_id": ("uids",),
    "row_id": ("row_id",),
    "response": (),
}
_MISSING = (
    "generator.sampling_params.logprobs=0 logs rollout_logprobs (trainer.dump_data_batch=true)"
)
_UNUSED = ("returns", "values", "base_action_log_probs")


class SkyRL(OneByOne):
    """Padding is cut off; what remains runs from the first to the last token of the response."""

    name = "skyrl"

    def sniff(self, source: Source) -> bool:
        """A pickle of SkyRL's batch."""
        head = source.head[:4096]
        return head[:1] == b"\x80" and b"skyrl" in head and b"_rebuild_tensor_batch" in head

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Read one file."""
        (source,) = sources
        with source.open() as stream:
            batch = load_pickle(stream, source.address)
        state = batch.args[-1] if isinstance(batch, Inert) and batch.args else None
        if not isinstance(state, dict) or "batch_dict" not in state:
            raise UnreadableLogError(source.address, "is no SkyRL batch", "choose it with --format")
        tensors = {
            name: _decoded(value, source.address)
            for name, value in state["batch_dict"].items()
            if isinstance(value, dict) and name not in _UNUSED
        }
        metadata = state.get("metadata") or {}
        step = metadata.get("global_step")
        named = None if step is None else (int(step), "metadata.global_step")
        yield from batches(_rows(tensors, metadata), source, options, notes, _OWN, _MISSING, named)


def _decoded(value: Mapping[str, Any], address: str) -> Any:
    """One encoded tensor; those of torch need torch."""
    if value.get("format") == "torch":
        return load_torch(value["data"], address)
    try:
        return from_bytes(value["data"], str(value["dtype"]), value["shape"])
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableLogError(address, f"broken tensor ({error})", "dump it again") from None


def _rows(tensors: Mapping[str, Any], metadata: Mapping[str, Any]) -> Iterator[NumberedRow]:
    """Rows of the batch."""
    mask = tensors.get("response_mask", tensors.get("loss_mask"))
    if mask is None:
        return
    count, width = mask.shape
    sequences, attention = tensors.get("sequences"), tensors.get("attention_mask")
    for i in range(count):
        start, stop = kept_part(mask[i])
        row = {k: v[i, start:stop] for k, v in tensors.items() if v.shape == (count, width)}
        if sequences is not None and sequences.shape[1] >= width:
            before = sequences.shape[1] - width + start
            row["response_tokens"] = sequences[i, before : before + stop - start]
            prompt = sequences[i, :before]  # left padding: the prompt reaches into the window
            row["prompt_ids"] = prompt if attention is None else prompt[attention[i, :before] != 0]
        if "rewards" in row:
            row["reward"] = float(np.sum(row["rewards"]))
        row |= {k: v[i] for k, v in metadata.items() if has_length(v, count)}
        yield i + 1, row
