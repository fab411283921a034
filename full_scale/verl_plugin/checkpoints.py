"""What a checkpoint of a stale run leaves behind: `trainer.checkpoint_callback_class`."""

import shutil
from pathlib import Path
from typing import Any

from verl.trainer.ppo.checkpoint_callback import CheckpointCallback

WEIGHTS, QUEUE = "actor", "transfer_queue"


class DropDeadQueues(CheckpointCallback):  # type: ignore[misc]
    """Removes queues that nothing can resume from.

    verl keeps the weights of `trainer.max_actor_ckpt_to_keep` checkpoints and the queues of all. A
    queue of 64 batches takes gigabytes, and without the weights beside it it is of no use.
    """

    def on_save(
        self,
        trainer: Any,
        global_step: int,
        checkpoint_dir: str,
        async_save: bool = False,
        **unused: Any,
    ) -> None:
        """Remove the folders of checkpoints that have a queue and no weights."""
        for queue in Path(checkpoint_dir).parent.glob(f"global_step_*/{QUEUE}"):
            if not (queue.parent / WEIGHTS).exists():
                shutil.rmtree(queue.parent)
