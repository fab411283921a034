"""prime-rl: token exports of the trainer, and the packed micro-batches it was fed.

`enable_token_export` writes token_exports/step_N/rank_R.jsonl, full sequences, and STABLE once
the step is complete (src/prime_rl/trainer/rl/token_export.py). The file-system transport writes
rollouts/step_N/rank_R.bin, positional msgpack (src/prime_rl/transports/rollouts/types.py).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs import jsontext, values
from m2po_lab.logs.batching import NumberedRow, batches
from m2po_lab.logs.errors import DamagedLogError
from m2po_lab.logs.metrics import MetricSeries
from m2po_lab.logs.msgpack import unpack
from m2po_lab.logs.reader import Notes, ReadOptions
from m2po_lab.logs.readers.base import cut, without_prompt
from m2po_lab.logs.source import Source

_KEYS = {"inference_logprobs", "trainer_logprobs", "loss_mask", "token_ids"}
_FIELDS = (
    "token_ids",
    "loss_mask",
    "advantages",
    "inference_logprobs",
    "position_ids",
    "sequence_lengths",
    "temperatures",
    "env_names",
)
_PER_TOKEN = ("token_ids", "loss_mask", "advantages", "inference_logprobs", "env_names")
_MISSING = "trainer.enable_token_export = true writes token_exports/ with trainer_logprobs"
_TRUST_REGION = (
    "prime-rl's trust region is on prob_delta, the difference of probabilities (DPPO), not on the "
    "ratio; the share of tokens it masked is the series prime-rl/is_masked_fraction"
)
_MASKED = "prime-rl/is_masked_fraction"


class PrimeRL:
    """Token exports; micro-batches where a step has no export."""

    name = "prime-rl"

    def sniff(self, source: Source) -> bool:
        """A token export, or msgpack that starts like a list of micro-batches."""
        return _is_micro_batches(source) or jsontext.first_object(source).keys() >= _KEYS

    def arrange(self, sources: Sequence[Source], notes: Notes) -> list[tuple[Source, ...]]:
        """All exports of a step together.

        Steps still being written are left out, and micro-batches of steps that are exported.
        """
        exports: dict[int, list[Source]] = {}
        packed = []
        for source in sources:
            if _is_micro_batches(source):
                packed.append(source)
            else:
                exports.setdefault(_step(source), []).append(source)
        unready = [step for step, files in exports.items() if not _is_stable(files[0])]
        if unready:
            notes.remark(f"steps without STABLE are still being written and left out: {unready}")
        groups = [tuple(files) for step, files in exports.items() if step not in unready]
        return groups + [(source,) for source in packed if _step(source) not in exports]

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Read the rank files of one step, or one file of micro-batches."""
        tally = np.zeros(2, dtype=np.int64)
        for source in sources:
            if _is_micro_batches(source):
                rows: Iterator[NumberedRow] = _packed_rows(source)
            else:
                rows = _exported_rows(source, options, notes, tally)
            yield from batches(rows, source, options, notes, missing_flag=_MISSING)
        if tally[0] and _step(sources[0]) >= 0:
            notes.remark(_TRUST_REGION)
            step, share = np.array([_step(sources[0])]), np.array([tally[1] / tally[0]])
            series = MetricSeries(_MASKED, sources[0].address, step, share, self.name)
            notes.metrics.append(series)


def _step(source: Source) -> int:
    """Step of the file's directory; -1 outside of one."""
    return source.step[0] if source.step else -1


def _is_stable(source: Source) -> bool:
    """Whether STABLE stands beside the file; a file outside a step directory counts as complete."""
    return _step(source) < 0 or source.has_sibling("STABLE")


def _exported_rows(
    source: Source, options: ReadOptions, notes: Notes, tally: Any
) -> Iterator[NumberedRow]:
    """Rows of an export without their prompts; counts loss tokens and those masked by DPPO."""
    for line, item in jsontext.objects(source, options, notes):
        if not values.is_sequence(item.get("loss_mask")):
            yield line, item
            continue
        masked = item.get("is_masked")
        if values.is_sequence(masked) and any(value is not None for value in masked):
            kept = values.mask(item["loss_mask"])
            tally += (int(kept.sum()), int((values.mask(masked) & kept[: len(masked)]).sum()))
        row = without_prompt(item, "loss_mask", "token_ids")
        row.pop("position_ids", None)
        number = item.get("export_sequence_idx", line)
        row["row_id"] = item.get("sample_id") or f"rank{item.get('rank', 0)}/{number}"
        yield line, row


def _is_micro_batches(source: Source) -> bool:
    """Msgpack that starts with a list of lists of lists of integers: micro-batches, fields, ids."""
    head, position = source.head[:32], 0
    for _ in range(3):
        size = _list_header_bytes(head[position : position + 1])
        if not size:
            return False
        position += size
    tag = head[position : position + 1]
    return len(tag) == 1 and (tag[0] < 0x80 or 0xCC <= tag[0] <= 0xD3)


def _list_header_bytes(tag: bytes) -> int:
    """Bytes of the header of a msgpack list that starts with this byte; 0 if it is no list."""
    if not tag:
        return 0
    return 1 if 0x90 <= tag[0] <= 0x9F else {0xDC: 3, 0xDD: 5}.get(tag[0], 0)


def _packed_rows(source: Source) -> Iterator[NumberedRow]:
    """Sequences of the packed micro-batches of one rank, prompts cut off."""
    with source.open() as stream:
        try:
            micro_batches = unpack(stream.read())
        except (ValueError, OverflowError, MemoryError) as error:
            raise DamagedLogError(
                source.address, f"no complete msgpack ({error})", "is it still being written?"
            ) from None
    number = 0
    for batch in micro_batches:
        fields = dict(zip(_FIELDS, batch, strict=False))
        start = 0
        for length in fields.get("sequence_lengths") or [len(fields["token_ids"])]:
            stop = start + int(length)
            row = {k: fields[k][start:stop] for k in _PER_TOKEN if fields.get(k) is not None}
            start = stop
            row = _without_padding(row)
            if len(row["loss_mask"]) and values.mask(row["loss_mask"]).any():
                number += 1
                row["row_id"] = f"{source.stem}/{number}"
                yield number, without_prompt(row, "loss_mask", "token_ids")


def _without_padding(row: dict[str, Any]) -> dict[str, Any]:
    """The row without the tokens of no environment at its end: padding of the micro-batch."""
    width = len(row["loss_mask"])
    names = row.pop("env_names", ())
    stop = len(names) if len(names) == width else width
    while stop and len(names) == width and names[stop - 1] == "" and not row["loss_mask"][stop - 1]:
        stop -= 1
    return cut(row, width, 0, stop)
