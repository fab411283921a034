"""Several runs in parallel processes, one thread each."""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from pathlib import Path

import orjson

from toy_envs.files import write_whole
from toy_envs.journal import METRICS
from toy_envs.recipes import RECIPES, Run
from toy_envs.train import settings_of, train

SECONDS = "seconds.json"
"""How long a run took; apart from what is the same in every repetition."""
POLL_SECONDS = 0.5


def run_all(
    runs: Mapping[Path, Run],
    cache: Path,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Run everything that is not finished yet; warm starts are made first, once a seed.

    Args:
        runs: directory of each run -> its settings.
        cache: where warm starts are kept.
        workers: processes; None is one a core.
        progress: called now and then with steps done and steps in all.

    Raises:
        ValueError: bad settings, before anything is started.
    """
    for run in runs.values():
        settings_of(run)
    total = sum(run.steps or RECIPES[run.recipe].steps for run in runs.values())
    # Forked children would inherit the state of other threads; spawned ones start clean.
    context = multiprocessing.get_context("spawn")
    count = workers or os.cpu_count() or 1
    count = min(count, max(1, len(runs)))
    with ProcessPoolExecutor(count, mp_context=context, initializer=_end_with_parent) as pool:
        try:
            starts = dict.fromkeys((run.recipe, run.seed) for run in runs.values())
            _await([pool.submit(_warm, *start, cache) for start in starts], lambda: None)
            jobs = [pool.submit(_one, run, out, cache) for out, run in runs.items()]
            _await(jobs, lambda: progress and progress(_steps_done(runs), total))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def seconds_of(out: Path) -> float:
    """Wall-clock seconds a finished run took, interruptions left out."""
    return float(orjson.loads((out / SECONDS).read_bytes())["seconds"])


def _await(jobs: Sequence[Future[None]], report: Callable[[], object]) -> None:
    """Wait for all jobs, report in between, and raise what the first failed one raised."""
    open_jobs = set(jobs)
    while open_jobs:
        finished, open_jobs = wait(open_jobs, timeout=POLL_SECONDS)
        for job in finished:
            job.result()
        report()


def _steps_done(runs: Mapping[Path, Run]) -> int:
    places = (out / METRICS for out in runs)
    return sum(place.read_bytes().count(b"\n") for place in places if place.exists())


def _end_with_parent() -> None:
    """Let a worker end when its parent is killed, or it would write beside the next attempt."""
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _warm(recipe: str, seed: int, cache: Path) -> None:
    RECIPES[recipe].make(RECIPES[recipe], seed, cache, None)


def _one(run: Run, out: Path, cache: Path) -> None:
    before = seconds_of(out) if (out / SECONDS).exists() else 0.0
    start = time.monotonic()
    stepped: list[int] = []
    train(run, out, cache=cache, progress=lambda step, _: stepped.append(step))
    if stepped or not (out / SECONDS).exists():
        spent = {"seconds": before + time.monotonic() - start}
        write_whole(out / SECONDS, lambda stream: stream.write(orjson.dumps(spent)))
