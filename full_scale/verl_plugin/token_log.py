"""The native token log, written beside the training by a thread of the worker."""

import queue
import threading
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict
from torch import Tensor

from full_scale.verl_plugin.config import M2POLossConfig
from full_scale.verl_plugin.fields import UNKNOWN_VERSION, padded, rows_of, versions_of
from full_scale.verl_plugin.mini_batch import MiniBatch
from full_scale.verl_plugin.tape import Tape
from m2po_lab.logs.writer import LogWriter

WAITING = 2
"""So many files wait for the disk before the training waits for them."""


class TokenLog:
    """Writes one file for each mini-batch and rank: whole or not at all, the same name on a rerun.

    A run that is killed loses at most the files that were waiting. One that is resumed writes the
    steps after its checkpoint again, over those of the run before.
    """

    def __init__(self, settings: M2POLossConfig, rank: int) -> None:
        """Start the thread.

        Args:
            settings: `log_dir` is set.
            rank: number of this data-parallel rank.
        """
        self.settings = settings
        self.rank = rank
        self._writer = LogWriter(str(settings.log_dir))
        self._tasks: queue.Queue[Callable[[], Any]] = queue.Queue(WAITING)
        self._error: BaseException | None = None
        threading.Thread(target=self._work, daemon=True, name="m2po token log").start()

    def due(self, step: int) -> bool:
        """Whether this step is to be written; steps count from 1."""
        return (step - 1) % self.settings.log_every == 0

    def write(
        self, mini: MiniBatch, tape: Tape, *, step: int, mini_batch: int, version: int
    ) -> None:
        """Copy what is to be written off the device, and leave the rest to the thread.

        Raises:
            RuntimeError: an earlier file could not be written.
        """
        self._raise()
        name = f"step_{step:07d}_mini_{mini_batch:03d}_rank_{self.rank:05d}"
        columns = token_columns(mini, tape) | row_columns(mini.data)
        chosen = sampled(columns["row_id"], self.settings.log_rows)
        shared = {"step": step, "mini_batch": mini_batch, "train_version": version}
        self._tasks.put(lambda: self._write(name, columns, chosen, shared))

    def flush(self) -> None:
        """Wait until everything is on the disk.

        Raises:
            RuntimeError: a file could not be written.
        """
        self._tasks.join()
        self._raise()

    def _write(
        self,
        name: str,
        columns: dict[str, Any],
        chosen: NDArray[np.bool_],
        shared: dict[str, int],
    ) -> None:
        lengths = columns["lengths"]
        tokens = np.arange(columns["loss_mask"].shape[1]) < lengths[:, None]
        tokens &= chosen[:, None]
        flat = {
            key: value[tokens] if isinstance(value, np.ndarray) and value.ndim == 2 else value
            for key, value in columns.items()
            if key != "lengths"
        }
        rows = np.flatnonzero(chosen)
        picked = {
            key: [value[i] for i in rows] if isinstance(value, list) else value
            for key, value in flat.items()
        }
        self._writer.write(name, lengths[chosen], **picked, **shared)

    def _work(self) -> None:
        while True:
            task = self._tasks.get()
            try:
                if self._error is None:
                    task()
            except BaseException as error:
                self._error = error
            finally:
                self._tasks.task_done()

    def _raise(self) -> None:
        if self._error is not None:
            raise RuntimeError(
                f"the token log in {self.settings.log_dir} could not be written "
                f"({self._error}); make room, or set actor.policy_loss.log_dir=null"
            ) from self._error


def token_columns(mini: MiniBatch, tape: Tape) -> dict[str, Any]:
    """(B, T) columns on the host, rows in their order, and the (B,) `lengths` of the responses."""
    size, width = mini.batch.shape
    start = int(mini.rows[0])
    fields = {"current_logp": "current_logp", "entropy": "entropy"}
    found: dict[str, Any] = {}
    for column, field in fields.items():
        if any(getattr(each.batch, field) is None for each in tape.judged):
            continue
        whole = torch.zeros(size, width)
        for each in tape.judged:
            values = getattr(each.batch, field).detach().float().cpu()
            whole[each.rows.cpu() - start, : values.shape[1]] = values
        found[column] = whole.numpy()
    batch = mini.batch
    found |= {
        "token_ids": _host(padded(mini.data["responses"])),
        "loss_mask": _host(batch.keep),
        "behavior_logp": _host(batch.behavior_logp),
        "advantage": _host(batch.advantage),
        "lengths": response_lengths(mini.data),
    }
    if batch.proximal_logp is not None:
        found["proximal_logp"] = _host(batch.proximal_logp)
    first, last = (np.asarray(ends, np.int64) for ends in versions_of(mini.data))
    # Which of its tokens came from which weights is not known of a row that was interrupted.
    version = np.where(first == last, last, UNKNOWN_VERSION)
    found["version"] = np.repeat(version[:, None], width, axis=1)
    return found


def row_columns(data: TensorDict) -> dict[str, list[Any]]:
    """Ids and rewards, one a row; a row without an id has None."""
    size = data.batch_size[0]
    uids = rows_of(data, "uid") or [None] * size
    sessions = rows_of(data, "session_id") or [None] * size
    ids = [
        None if uid is None else str(uid) if session is None else f"{uid}_{session}"
        for uid, session in zip(uids, sessions, strict=True)
    ]
    columns: dict[str, list[Any]] = {
        "row_id": ids,
        "group_id": [None if uid is None else str(uid) for uid in uids],
    }
    for name in ("rm_scores", "token_level_scores"):
        if name in data.keys():  # noqa: SIM118 - a TensorDict iterates over rows
            columns["reward"] = padded(data[name]).sum(dim=-1).tolist()
            break
    return columns


def response_lengths(data: TensorDict) -> NDArray[np.int64]:
    """(B,) tokens of each response, masked ones included."""
    responses = data["responses"]
    if responses.is_nested:
        lengths = responses.offsets().diff()
    else:
        lengths = data["attention_mask"][:, -responses.shape[1] :].sum(dim=1)
    counted: NDArray[np.int64] = _host(lengths).astype(np.int64)
    return counted


def sampled(row_ids: list[str | None], fraction: float) -> NDArray[np.bool_]:
    """(B,) rows to write: the same ones in every run; rows without an id always."""
    bound = int(fraction * (1 << 32))
    return np.array([i is None or zlib.crc32(i.encode()) < bound for i in row_ids])


def _host(tensor: Tensor) -> NDArray[Any]:
    """Bring a tensor to the host; numpy has no bfloat16, and float32 holds every one of them."""
    still = tensor.detach()
    array: NDArray[Any] = (still.float() if still.is_floating_point() else still).cpu().numpy()
    return array
