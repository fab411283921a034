"""Dumps with one JSON object a logging step, a list a column: ms-swift and ROLL.

Writers: swift/rlhf_trainers/grpo_trainer.py; roll/pipeline/rlvr/utils.py and agentic/utils.py.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs import jsontext, values
from m2po_lab.logs.batching import NumberedRow
from m2po_lab.logs.hashing import bytes_hash
from m2po_lab.logs.metrics import MetricSeries
from m2po_lab.logs.reader import Notes, ReadOptions
from m2po_lab.logs.readers.base import Columns, JsonFormat, columnar
from m2po_lab.logs.rows import UNKNOWN
from m2po_lab.logs.source import Source

_NOT_REWARDS = {"step", "advantages", "advantage", "entropy", "prompt", "completion"}


def reward_of(row: dict[str, Any]) -> float | None:
    """Sum of the reward functions of a row (their weights are not logged); None without."""
    given = {
        k: v
        for k, v in row.items()
        if k not in _NOT_REWARDS and isinstance(v, int | float) and not isinstance(v, bool)
    }
    named = [v for k, v in given.items() if "reward" in k.lower()] or list(given.values())
    return float(np.sum(named)) if named else None


def prompt_group(row: dict[str, Any], prompt: str = "prompt") -> str | None:
    """Group of a row by step and prompt text, for logs without a group column."""
    text = values.text(row.get(prompt))
    return None if text is None else f"{row.get('step')}/{bytes_hash(text.encode()):016x}"


class MsSwift(JsonFormat):
    """Columns step (as text), prompt, completion, one a reward function, advantages."""

    name = "ms-swift"
    keys = frozenset({"step", "prompt", "completion", "advantages"})
    own: ClassVar[Columns] = {"entropy": (), "reward": ("reward",)}
    missing_flag = (
        "--log_completions holds text only; --log_rollout_offpolicy_metrics true logs the mismatch "
        "of rollout_per_token_logps and per_token_logps as metrics"
    )

    def sniff(self, source: Source) -> bool:
        """The keys, with lists under them."""
        first = jsontext.first_object(source)
        return self.keys <= first.keys() and values.is_sequence(first["completion"])

    def rows(self, line: int, item: dict[str, Any]) -> Iterator[NumberedRow]:
        """One row a completion."""
        for row in columnar(item, len(item["completion"])):
            row |= {"reward": reward_of(row), "group_id": prompt_group(row)}
            yield line, row

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Read the rows, and the mean entropy of each step as a series."""
        yield from super().read(sources, options, notes)
        steps, means = [], []
        for _, item in jsontext.objects(sources[0], options, Notes()):
            if values.is_sequence(item.get("entropy")) and len(item["entropy"]):
                steps.append(values.integer(item["step"][0]))
                means.append(float(np.mean(values.numbers(item["entropy"]).values)))
        if steps and UNKNOWN not in steps:
            address, step = sources[0].address, np.array(steps, dtype=np.int64)
            notes.metrics.append(MetricSeries("entropy", address, step, np.array(means), self.name))


class Roll(JsonFormat):
    """A single line a step; agentic runs add `trajectory_data`, JSON in a text."""

    name = "roll"
    keys = frozenset({"global_step"})
    own: ClassVar[Columns] = {"row_id": ("id",)}
    missing_flag = (
        "rollout_dump_dir holds text only; infer_logprobs and old_log_probs are in the training "
        "batch: save them in the pipeline beside the dump"
    )

    def sniff(self, source: Source) -> bool:
        """Lists under `global_step` and under the responses."""
        first = jsontext.first_object(source)
        texts = first.get("responses", first.get("trajectory_data"))
        return values.is_sequence(first.get("global_step")) and values.is_sequence(texts)

    def rows(self, line: int, item: dict[str, Any]) -> Iterator[NumberedRow]:
        """One row a response."""
        for i, row in enumerate(columnar(item, len(item["global_step"]))):
            trajectory = row.pop("trajectory_data", None)
            if isinstance(trajectory, str):
                row = _trajectory(trajectory) | row
            row["group_id"] = prompt_group({**row, "step": row.get("global_step")})
            yield i + 1, row


def _trajectory(text: str) -> dict[str, Any]:
    """Columns inside a `trajectory_data` text; empty if it is none."""
    try:
        held = jsontext.parse(text.encode())
    except ValueError:
        return {}
    return held if isinstance(held, dict) else {}
