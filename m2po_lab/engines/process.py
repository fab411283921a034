"""The scan in a pool of processes over the files; the same Analysis as in one."""

import os
import signal
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context

from m2po_lab.analysis import Analysis, Options
from m2po_lab.engines.local import MOST_PARTS, local, scan_part
from m2po_lab.engines.watch import Watch
from m2po_lab.logs.open import Log

SECONDS_BETWEEN_LOOKS = 0.2


def process(log: Log, options: Options, watch: Watch, workers: int | None = None) -> Analysis:
    """Scan the parts of a log in a pool of processes and merge in the order of the files.

    The report is that of `local`, byte for byte: the parts are the same.

    Workers cannot see each other's rows: if a row turns out to be in two parts, or the parts were
    too small to see what the whole log shows, the log is read once more in one process.

    Args:
        log: a log that was not read yet.
        options: what to compute.
        watch: progress comes once a part; a stop merges the parts that are ready.
        workers: processes; None takes as many as there are CPUs.
    """
    count = workers or os.cpu_count() or 1
    parts = log.parts(MOST_PARTS)
    if len(parts) < 2:
        return local(log, options, watch)
    context = get_context("spawn")
    with ProcessPoolExecutor(min(count, len(parts)), context, _ignore_interrupts) as pool:
        futures = [pool.submit(_scan_part, part, options) for part in parts]
        stopped = _wait(futures, watch)
        if stopped:
            pool.shutdown(wait=False, cancel_futures=True)
    merged = Analysis(options=options, partial=stopped)
    for future in futures:
        if future.done() and not future.cancelled():
            merged.absorb(future.result())
    if not (merged.rows["read"] or merged.metrics or stopped):
        raise log.nothing_read()
    again = merged.integrity.counted_twice or merged.integrity.overruled()
    if again and not stopped:
        return local(log, options, watch)
    return merged


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that the user talks to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _scan_part(log: Log, options: Options) -> Analysis:
    return scan_part(log, options, Watch())


def _wait(futures: list[Future[Analysis]], watch: Watch) -> bool:
    """Wait for all futures, telling the caller about each; return whether it asked to stop."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED)
        for future in done:
            found = future.result()
            watch.progress(found.rows["read"], found.tokens["logged"])
        if watch.stop.requested:
            return True
    return False
