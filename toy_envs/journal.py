"""The directory of a run: native log, metrics, checkpoint; a killed run goes on from here."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import orjson

from m2po_lab.logs.writer import LogWriter
from toy_envs.files import load_arrays, save_arrays, write_whole
from toy_envs.measure import Metrics
from toy_envs.policy import Policy, Rollout, State, Update
from toy_envs.recipes import Run
from toy_envs.staleness import Queue

LOG, METRICS, SETTINGS, CHECKPOINT = "log", "metrics.jsonl", "run.json", "checkpoint.npz"


class RunMismatchError(ValueError):
    """The directory holds another run."""


class Journal:
    """Writes what a run leaves behind, so that the bytes do not tell whether it was interrupted.

    Every step writes one Parquet file and one line of metrics; a checkpoint says how many steps
    are final. Resuming cuts the metrics there and writes the log files behind it again.

    Args:
        out: directory of the run.
        run: its settings; they are written down, and must be the same when it is resumed.
        samples: answers a prompt.

    Raises:
        RunMismatchError: the directory holds a run with other settings.
    """

    def __init__(self, out: Path, run: Run, samples: int) -> None:
        """Open or make the directory."""
        self.out, self.samples = out, samples
        settings = orjson.dumps(asdict(run), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        place = out / SETTINGS
        if place.exists() and place.read_bytes() != settings:
            raise RunMismatchError(
                f"{out} holds a run with other settings ({SETTINGS}); give another --out, or "
                "remove it"
            )
        write_whole(place, lambda stream: stream.write(settings))
        self.log = LogWriter(out / LOG)
        self.metrics: list[Metrics] = []

    def resume(self, policy: Policy, queue: Queue) -> int:
        """Load the newest checkpoint into policy and queue; return how many steps are done."""
        if not (self.out / CHECKPOINT).exists():
            return 0
        state = load_arrays(self.out / CHECKPOINT)
        done = int(state["steps"])
        policy.load(inside(state, "policy/"))
        queue.load(inside(state, "queue/"))
        self.metrics = read_metrics(self.out)[:done]
        self._write_metrics()
        return done

    def step(self, step: int, trained: Rollout, updates: list[Update], metrics: Metrics) -> None:
        """Write the tokens of one step and its metrics."""
        width = trained.n_rows // len(updates)
        mini_batch = np.repeat(np.arange(len(updates)), width)
        keep, lengths = trained.keep, trained.keep.sum(axis=1)
        current = np.concatenate([update.current_logp for update in updates])
        proximal = trained.proximal_logp
        group = np.arange(trained.n_rows) // self.samples
        self.log.write(
            f"step_{step:06d}",
            lengths,
            step=np.full(trained.n_rows, step),
            mini_batch=mini_batch,
            train_version=step * len(updates) + mini_batch,
            row_id=[f"{step}-{i}" for i in range(trained.n_rows)],
            group_id=[f"{step}-{g}" for g in group],
            token_ids=trained.tokens[keep],
            behavior_logp=trained.behavior_logp[keep],
            proximal_logp=None if proximal is None else proximal[keep],
            current_logp=current[keep],
            entropy=trained.entropy[keep],
            version=trained.version[keep],
            advantage=trained.advantage,
            reward=trained.reward,
        )
        self.metrics.append({"step": step, "updates": step * len(updates), **metrics})
        with (self.out / METRICS).open("wb" if step == 0 else "ab") as stream:
            stream.write(_line(self.metrics[-1]))

    def checkpoint(self, steps: int, policy: Policy, queue: Queue) -> None:
        """Make everything up to here final."""
        self._write_metrics()
        parts = {"policy/": policy.state(), "queue/": queue.state()}
        state: State = {
            prefix + name: array
            for prefix, arrays in parts.items()
            for name, array in arrays.items()
        }
        save_arrays(self.out / CHECKPOINT, {"steps": np.array(steps), **state})

    def _write_metrics(self) -> None:
        text = b"".join(_line(entry) for entry in self.metrics)
        write_whole(self.out / METRICS, lambda stream: stream.write(text))


def read_metrics(out: Path) -> list[Metrics]:
    """Read the metrics of a run, one entry a step; null is NaN, a cut last line is left out."""
    lines = (out / METRICS).read_bytes().split(b"\n")[:-1]
    return [
        {name: float("nan") if value is None else value for name, value in entry.items()}
        for entry in map(orjson.loads, lines)
    ]


def _line(metrics: Metrics) -> bytes:
    """One line of JSON; orjson writes NaN and infinities as null."""
    return orjson.dumps(metrics) + b"\n"


def inside(state: State, prefix: str) -> State:
    """Entries under a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
