"""The scan: one pass over batches, constant memory, one Analysis."""

from collections.abc import Iterable

from m2po_lab.analysis.chunk import CHUNK_TOKENS, Chunk, as_numpy, chunk_of, concatenate
from m2po_lab.analysis.options import Options
from m2po_lab.analysis.result import Analysis
from m2po_lab.analysis.tables import RatioTables, add_chunk
from m2po_lab.analysis.worst import Worst
from m2po_lab.core.batch import RATIOS, TOKEN_FIELDS, TokenBatch
from m2po_lab.integrity import BatchIntegrity, Memory, checked


def scan(
    batches: Iterable[TokenBatch], options: Options | None = None, memory: Memory | None = None
) -> Analysis:
    """Analyze a stream of batches in one pass.

    What cannot be trusted is left out first (`m2po_lab.integrity`). Memory does not depend on how
    many tokens there are. It grows with the distinct steps and lags, by about 33 kB a cell and
    ratio, and with the rows that have an id, by 8 bytes each (to find duplicates).

    Args:
        batches: whole rows each; a `Log` of `m2po_lab.logs.open_log` or any iterable.
        options: what to compute.
        memory: rows that other scans of the same log have counted; grows.
    """
    scanner, memory = Scanner(options or Options()), memory or Memory()
    for clean, evidence in checked(map(on_host, batches), memory):
        scanner.add(clean, evidence)
    analysis = scanner.finish()
    analysis.integrity = analysis.integrity + memory.rest()
    return analysis


def on_host(batch: TokenBatch) -> TokenBatch:
    """Return the batch with numpy arrays; those of other libraries leave gradient and device."""
    names = (*TOKEN_FIELDS, "lengths")
    found = {n: a for n in names if hasattr(a := getattr(batch, n), "detach")}
    if not found:
        return batch
    return batch.replace(**{name: as_numpy(array) for name, array in found.items()})


class Scanner:
    """The state of a scan, for callers who want a result while the log is still being read."""

    def __init__(self, options: Options) -> None:
        self.analysis = Analysis(options=options)
        self._waiting: list[Chunk] = []
        self._tokens = 0

    def add(self, clean: TokenBatch, evidence: BatchIntegrity) -> None:
        """Add one batch of whole rows whose `keep` integrity has settled."""
        analysis, chunk = self.analysis, chunk_of(clean)
        analysis.forget()
        analysis.integrity = analysis.integrity + evidence
        for total, counts in (
            (analysis.tokens, {"logged": evidence.tokens.logged, "kept": evidence.tokens.kept}),
            (analysis.rows, {"read": evidence.rows.read, "kept": evidence.rows.kept}),
        ):
            for name, count in counts.items():
                total[name] += count
        analysis.facts.add(clean, chunk)
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
        analysis = self.analysis
        analysis.forget()
        for ratio in RATIOS:
            d = chunk.log_ratio(ratio)
            if d is not None:
                tables = analysis.ratios.setdefault(ratio, RatioTables())
                add_chunk(tables, chunk, d, analysis.options)
                analysis.worst.setdefault(ratio, Worst(analysis.options.worst)).add(chunk, d)
        if analysis.ratios:
            analysis.sample.add(chunk)

    def finish(self) -> Analysis:
        """Return the analysis of everything added."""
        self.flush()
        return self.analysis
