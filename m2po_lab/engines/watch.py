"""How a caller follows a scan: a switch that ends it, and progress."""

from collections.abc import Callable
from dataclasses import dataclass, field


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
