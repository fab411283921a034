"""Ctrl-C that ends the reading and still leaves a report; a second one ends the program."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """A switch that the first Ctrl-C throws; calling it tells whether it was thrown."""

    def __init__(self) -> None:
        """Start untouched."""
        self.requested = False

    def __call__(self) -> bool:
        """Whether the reading is to end."""
        return self.requested

    def throw(self, signum: int, frame: FrameType | None) -> None:
        """Ask for the end; asked a second time, interrupt at once."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Yield a switch that SIGINT throws while the block runs (main thread only)."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGINT, stop.throw)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
