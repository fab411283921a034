"""The scan in this process, one part of the log after the other."""

from collections.abc import Iterator

from m2po_lab.analysis import Analysis, Options, scan
from m2po_lab.core.batch import TokenBatch
from m2po_lab.engines.watch import Watch
from m2po_lab.integrity import Memory
from m2po_lab.logs.open import Log

MOST_PARTS = 64
"""Parts of neighbouring files that are scanned by themselves and then merged in order.

It depends on nothing but the log, so every engine adds the same numbers in the same order.
"""


def local(log: Log, options: Options, watch: Watch) -> Analysis:
    """Scan in this process, part by part; rows are known across parts.

    What only the whole log shows (`integrity.marks`) is looked for in a second reading.
    """
    merged = _scanned(log, options, watch, Memory())
    if not (log.is_part or merged.rows["read"] or merged.metrics or merged.partial):
        raise log.nothing_read()
    charges = merged.integrity.overruled()
    if charges and not merged.partial:
        return _scanned(log, options, watch, Memory(given=charges))
    return merged


def _scanned(log: Log, options: Options, watch: Watch, memory: Memory) -> Analysis:
    merged = Analysis(options=options)
    log.inputs, log.bad_rows = [], 0
    for part in log.parts(MOST_PARTS):
        if watch.stop.requested:
            merged.partial = True
            break
        merged.absorb(scan_part(part, options, watch, memory))
        log.inputs += part.inputs
        log.bad_rows += part.bad_rows
    return merged


def scan_part(log: Log, options: Options, watch: Watch, memory: Memory | None = None) -> Analysis:
    """Scan a part of a log as one stream.

    Args:
        log: the part.
        options: what to compute.
        watch: progress comes once a batch; a stop ends the reading.
        memory: the rows of other parts that this process has seen; grows.
    """
    analysis = scan(_watched(log, watch), options, memory)
    analysis.inputs = [
        {**entry.to_dict(), "remarks": entry.remarks, "missing_flag": entry.missing_flag}
        for entry in log.inputs
    ]
    analysis.metrics = list(log.metrics)
    analysis.partial = log.partial
    analysis.rows["bad"] = analysis.rows.get("bad", 0) + log.bad_rows
    return analysis


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
