"""Ctrl-C that ends the reading and still leaves a report; a second one ends the program."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from m2po_lab.engines import Stop


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Yield a switch that the first SIGINT throws while the block runs (main thread only)."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def throw(signum: int, frame: FrameType | None) -> None:
        again, stop.requested = stop.requested, True
        if again or stop.reading:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, throw)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
