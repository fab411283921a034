"""Where a scan runs: this process or a pool of processes over the files; the same Analysis."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from m2po_lab.analysis import Analysis, Options, scan
from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.open import Log

PARTS_A_WORKER = 4
SECONDS_BETWEEN_LOOKS = 0.2


class Stop:
    """A switch that ends the reading of a log.

    Attributes:
        requested: set it, from a signal handler or another thread, to end after this batch.
        reading: whether the engine is waiting for a batch; a KeyboardInterrupt raised meanwhile,
            by a handler that has set `requested`, ends the reading at once and loses nothing.
    """

    def __init__(self) -> None:
        """Start untouched."""
        self.requested = False
        self.reading = False


def unseen(rows: int, tokens: int) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Watch:
    """How a caller follows a scan.

    Attributes:
        stop: ends the reading; the analysis is then partial.
        progress: told the rows and tokens of every batch.
    """

    stop: Stop = field(default_factory=Stop)
    progress: Callable[[int, int], None] = unseen


def local(log: Log, options: Options, watch: Watch) -> Analysis:
    """Scan in this process, one batch after the other."""
    analysis = scan(_watched(log, watch), options)
    return _with_inputs(analysis, log)


def process(log: Log, options: Options, watch: Watch, workers: int | None = None) -> Analysis:
    """Scan the files of a log in a pool of processes and merge in the order of the files.

    Workers cannot see each other's rows: if a row turns out to be in two parts, the log is read
    once more in one process, which counts it once.

    Args:
        log: a log that was not read yet.
        options: what to compute.
        watch: progress comes once a part; a stop merges the parts that are ready.
        workers: processes; None takes as many as there are CPUs.
    """
    count = workers or os.cpu_count() or 1
    parts = _parts(log, count * PARTS_A_WORKER)
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
    if merged.integrity.keys.repeated and not stopped:
        return local(log, options, watch)
    if not merged.rows["read"] and not merged.metrics and not stopped:
        raise log.nothing_read()
    merged.inputs = joined(merged.inputs)
    return merged


ENGINES: Mapping[str, Callable[[Log, Options, Watch], Analysis]] = {
    "local": local,
    "process": process,
}


def _watched(log: Log, watch: Watch) -> Iterator[TokenBatch]:
    """Yield the batches until the caller asks for the end."""
    source, stop = iter(log), watch.stop
    while not stop.requested:
        stop.reading = True
        try:
            batch = next(source, None)
        except KeyboardInterrupt:
            if not stop.requested:
                raise
            return
        finally:
            stop.reading = False
        if batch is None:
            return
        yield batch
        watch.progress(batch.n_rows, batch.shape[0])


def _with_inputs(analysis: Analysis, log: Log) -> Analysis:
    """Add what the log says about its reading to the analysis of its tokens."""
    analysis.inputs = [{**entry.to_dict(), "remarks": entry.remarks} for entry in log.inputs]
    analysis.metrics = list(log.metrics)
    analysis.metrics = list(log.metrics)
    analysis.partial = log.partial
    analysis.rows["bad"] = analysis.rows.get("bad", 0) + log.bad_rows
    return analysis


def _parts(log: Log, most: int) -> list[Log]:
    """Split the units of a log into at most `most` neighbouring groups of about the same number."""
    units = log.units
    size = max(1, -(-len(units) // most))
    return [
        Log(units[i : i + size], log.options, log.path, is_part=True)
        for i in range(0, len(units), size)
    ]


def joined(inputs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the entries of one path and format that parts of a log contributed."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in inputs:
        known = found.setdefault((entry["path"], entry["format"]), {})
        for name in ("files", "rows", "tokens"):
            known[name] = known.get(name, 0) + entry[name]
        known["columns"] = {**known.get("columns", {}), **entry["columns"]}
        old = known.get("remarks", [])
        known["remarks"] = [*old, *(text for text in entry["remarks"] if text not in old)]
    names = ("files", "rows", "tokens", "columns", "remarks")
    return [
        {"path": path, "format": format, **{name: entry[name] for name in names}}
        for (path, format), entry in found.items()
    ]


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that the user talks to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _scan_part(log: Log, options: Options) -> Analysis:
    """Scan some files; that none of them has a readable row is for the whole log to judge."""
    try:
        return local(log, options, Watch())
    except UnreadableLogError as error:
        if str(error) != str(log.nothing_read()):
            raise
        empty = _with_inputs(Analysis(options=options), log)
        empty.partial = False
        return empty


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
