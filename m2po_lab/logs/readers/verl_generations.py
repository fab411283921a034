"""verl `trainer.rollout_data_dir`: text of the rollouts, one sample a line, a file a step.

Written by `_dump_generations` (verl/trainer/ppo/ray_trainer.py and v1/trainer_base.py).
"""

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from m2po_lab.logs.batching import NumberedRow
from m2po_lab.logs.readers.base import Columns, JsonFormat

_KEY = re.compile(r"^(.+)_\d+_\d+$")

MISSING_FLAG = (
    "actor_rollout_ref.rollout.calculate_log_probs=True, and keep the batch itself: "
    "trainer.rollout_data_dir holds text only (RolloutSkip's gen_batch.dp, or "
    "batch.save_to_disk after the old_log_probs stage, hold both log-probs)"
)


class VerlGenerations(JsonFormat):
    """Prompt, response, score and step; v1 adds `uid` = prompt, rollout and output number."""

    name = "verl-generations"
    keys = frozenset({"input", "output", "score", "step", "gts"})
    own: ClassVar[Columns] = {"row_id": ("row_id", "request_id")}
    missing_flag = MISSING_FLAG

    def rows(self, line: int, item: dict[str, Any]) -> Iterator[NumberedRow]:
        """Split v1's `uid` into row and group."""
        key = item.get("uid")
        if isinstance(key, str) and (found := _KEY.match(key)):
            item = {**item, "uid": found[1], "row_id": key}
        yield line, item
