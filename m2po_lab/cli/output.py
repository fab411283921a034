"""Standard output and standard error: encodings, closed pipes, colour."""

import os
import shutil
import sys
from typing import TextIO


def prepare() -> None:
    """Let a terminal that cannot show a character get a question mark, never an exception."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def say(text: str) -> None:
    """Write to standard output; a reader that went away (`| head`) is no error."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        discard()


def warn(line: str) -> None:
    """Write a line to standard error, if there is one."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except (BrokenPipeError, AttributeError):
        return


def discard() -> None:
    """Point standard output at nothing, so that the interpreter's last flush stays quiet."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())


def columns() -> int:
    """Width to fill: the terminal's or COLUMNS, 100 for a pipe or a file."""
    return shutil.get_terminal_size((100, 24)).columns


def colored(stream: TextIO) -> bool:
    """Whether to use colour: a terminal that can, and NO_COLOR is not set."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream.isatty()
