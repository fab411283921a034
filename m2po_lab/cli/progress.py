"""One line on standard error that says how far the reading is; only on a terminal."""

import sys
import time
from typing import TextIO

SECONDS_BETWEEN = 0.2


class Progress:
    """Counts tokens and rows as they pass and rewrites its line a few times a second.

    Args:
        stream: where to write; silent unless it is a terminal.
        enabled: False keeps silent on a terminal too.
    """

    def __init__(self, stream: TextIO | None = None, enabled: bool = True) -> None:
        """Start at zero."""
        self.stream: TextIO | None = sys.stderr if stream is None else stream
        self.enabled = enabled and self.stream is not None and self.stream.isatty()
        self.rows = self.tokens = 0
        self._started = self._shown = time.monotonic()

    def __call__(self, rows: int, tokens: int) -> None:
        """Count one batch."""
        self.rows += rows
        self.tokens += tokens
        now = time.monotonic()
        if self.enabled and now - self._shown >= SECONDS_BETWEEN:
            self._shown = now
            rate = self.tokens / max(now - self._started, 1e-9)
            self._write(f"read {self.rows:,} rows, {self.tokens:,} tokens ({rate:,.0f}/s)")

    def close(self) -> None:
        """Remove the line."""
        if self.enabled and self._shown != self._started:
            self._write("")

    def _write(self, text: str) -> None:
        if self.stream is not None:
            self.stream.write(f"\r{text}\x1b[K")
            self.stream.flush()
