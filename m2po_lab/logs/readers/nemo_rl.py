"""NeMo-RL train_data_step{N}.jsonl: full padded sequences with a leading dimension of 1.

Written by nemo_rl/algorithms/grpo.py through nemo_rl/utils/logger.py.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from m2po_lab.logs import values
from m2po_lab.logs.batching import NumberedRow
from m2po_lab.logs.readers.base import Columns, JsonFormat, cut, without_prompt
from m2po_lab.logs.rows import UNKNOWN


class NemoRL(JsonFormat):
    """One sample a line; prompt and padding are cut off, a sample masked as a whole keeps none."""

    name = "nemo-rl"
    keys = frozenset({"token_ids", "token_loss_mask", "generation_logprobs", "prev_logprobs"})
    own: ClassVar[Columns] = {"row_id": ("row_id", "idx"), "prompt": (), "response": ()}
    missing_flag = (
        "train_data_step*.jsonl holds generation_logprobs and prev_logprobs unless "
        "env.should_log_nemo_gym_responses is set"
    )

    def rows(self, line: int, item: dict[str, Any]) -> Iterator[NumberedRow]:
        """Take off the leading dimension, cut to the input length, cut off the prompt."""
        row = {k: values.unwrapped(v) if values.is_sequence(v) else v for k, v in item.items()}
        mask = row.get("token_loss_mask")
        if not values.is_sequence(mask) or not len(mask):
            yield line, row
            return
        length = values.integer(row.get("input_lengths"))
        if length != UNKNOWN and 0 < length <= len(mask):
            row = cut(row, len(mask), 0, length)
        sample = values.real(row.get("sample_loss_mask"))
        if sample == 0:
            row["token_loss_mask"] = [0] * len(row["token_loss_mask"])
        yield line, without_prompt(row, "token_loss_mask", "token_ids")
