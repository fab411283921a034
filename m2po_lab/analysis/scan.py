"""The scan: one pass over batches, constant memory, one Analysis."""

from collections.abc import Iterable

from m2po_lab.analysis.chunk import CHUNK_TOKENS, Chunk, as_numpy, chunk_of, concatenate
from m2po_lab.analysis.options import Options
from m2po_lab.analysis.result import Analysis
from m2po_lab.analysis.tables import RatioTables, add_chunk
from m2po_lab.core.batch import RATIOS, TokenBatch


def scan(batches: Iterable[TokenBatch], options: Options | None = None) -> Analysis:
    """Analyze a stream of batches in one pass.

    Memory does not depend on how many tokens there are. It grows with the number of distinct steps
    and lags, by about 33 kB a cell and ratio.

    Args:
        batches: whole rows each, in any order; a `Log` of `m2po_lab.logs.open_log` or any iterable.
        options: what to compute.
    """
    scanner = Scanner(options or Options())
    for batch in batches:
        scanner.add(batch)
    return scanner.finish()


class Scanner:
    """The state of a scan, for callers who want a result while the log is still being read."""

    def __init__(self, options: Options) -> None:
        self.analysis = Analysis(options=options)
        self._waiting: list[Chunk] = []
        self._tokens = 0

    def add(self, batch: TokenBatch) -> None:
        """Add one batch of whole rows."""
        clean = batch
        chunk = chunk_of(clean, batch.keep)
        counts, rows = self.analysis.tokens, self.analysis.rows
        counts["logged"] += int(as_numpy(batch.keep).size)
        counts["kept"] += chunk.n
        rows["read"] += batch.n_rows
        rows["kept"] += _distinct_sorted(chunk)
        self._waiting.append(chunk)
        self._tokens += chunk.n
        if self._tokens >= CHUNK_TOKENS:
            self.flush()

    def flush(self) -> None:
        """Bring everything added so far into `analysis`."""
        if not self._waiting:
            return
        chunk = concatenate(self._waiting)
        self._waiting, self._tokens = [], 0
        options = self.analysis.options
        for ratio in RATIOS:
            d = chunk.log_ratio(ratio)
            if d is not None:
                tables = self.analysis.ratios.setdefault(ratio, RatioTables())
                add_chunk(tables, chunk, d, options.by)

    def finish(self) -> Analysis:
        """Return the analysis of everything added."""
        self.flush()
        return self.analysis


def _distinct_sorted(chunk: Chunk) -> int:
    """How many rows have a kept token; rows ascend."""
    if chunk.n == 0:
        return 0
    return 1 + int((chunk.row[1:] != chunk.row[:-1]).sum())
