"""The scan in this process, one batch after the other."""

from collections.abc import Iterator

from m2po_lab.analysis import Analysis, Options, scan
from m2po_lab.core.batch import TokenBatch
from m2po_lab.engines.watch import Watch
from m2po_lab.logs.open import Log


def local(log: Log, options: Options, watch: Watch) -> Analysis:
    """Scan in this process, one batch after the other."""
    analysis = scan(_watched(log, watch), options)
    return _with_inputs(analysis, log)


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
    analysis.partial = log.partial
    analysis.rows["bad"] = analysis.rows.get("bad", 0) + log.bad_rows
    return analysis
