"""Parquet tables that are not native: TRL's completions, and any table under common names.

TRL: trl/trainer/grpo_trainer.py, `log_completions`: step, prompt, completion, one column a reward
function (null allowed), advantage.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs import arrow
from m2po_lab.logs.batching import NumberedRow, batches
from m2po_lab.logs.jsonlines import MISSING_FLAG, is_rollout
from m2po_lab.logs.packed import unpacked
from m2po_lab.logs.reader import Notes, OneByOne, ReadOptions
from m2po_lab.logs.readers.columnar_text import prompt_group, reward_of
from m2po_lab.logs.source import Source

_TRL_COLUMNS = {"step", "prompt", "completion", "advantage"}
_TRL_MISSING = (
    "log_completions=True holds text only; with use_vllm=True and "
    "vllm_importance_sampling_correction=True save sampling_per_token_logps, "
    "old_per_token_logps and completion_mask in the trainer"
)


class Table(OneByOne):
    """Any Parquet table with the columns of a rollout log."""

    name = "parquet"
    own: Mapping[str, tuple[str, ...]] = {}
    missing_flag = MISSING_FLAG

    def sniff(self, source: Source) -> bool:
        """A Parquet file with a response or log-probs, or one cut short."""
        schema = arrow.parquet_schema(source)
        if schema is None:
            return arrow.starts_as_parquet(source)
        return self.recognises(schema)

    def recognises(self, schema: pa.Schema) -> bool:
        """Whether the columns are those of the format."""
        return is_rollout(dict.fromkeys(schema.names))

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """One row under names that the column table knows."""
        return row

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Read one file; one without a footer is a write cut short."""
        (source,) = sources
        with arrow.parquet(source) as file:
            if file is None:
                notes.bad_rows += 1
                notes.remark(f"{source.address} is no complete Parquet file")
                return
            rows: Iterator[NumberedRow] = (
                (first + i + 1, one)
                for first, table in arrow.tables(file, options.batch_tokens)
                for i, row in enumerate(table.to_pylist())
                for one in unpacked(self.row(row), notes)
            )
            yield from batches(rows, source, options, notes, self.own, self.missing_flag)


class Trl(Table):
    """Text, rewards and advantage; a group is the same prompt in the same step."""

    name = "trl-completions"
    own: Mapping[str, tuple[str, ...]] = {"reward": ("reward",)}
    missing_flag = _TRL_MISSING

    def sniff(self, source: Source) -> bool:
        """A complete Parquet file with TRL's columns."""
        schema = arrow.parquet_schema(source)
        return schema is not None and self.recognises(schema)

    def recognises(self, schema: pa.Schema) -> bool:
        """TRL's columns."""
        return set(schema.names) >= _TRL_COLUMNS

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Add the reward over the functions and the group."""
        return {**row, "reward": reward_of(row), "group_id": prompt_group(row)}
