"""Standard output and standard error: encodings, closed pipes, colour."""

import errno
import os
import shutil
import sys
from pathlib import Path
from typing import TextIO

STDOUT = "standard output"


def prepare() -> None:
    """Let a terminal that cannot show a character get a question mark, never an exception."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def say(text: str) -> None:
    """Write to standard output; a reader that went away (`| head`) is no error.

    Raises:
        OSError: it is closed, or what lies behind it is full.
    """
    if sys.stdout is None:  # what Python makes of a closed descriptor
        raise OSError(errno.EBADF, "is closed", STDOUT)
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        discard()
    except OSError as error:
        raise _unwritable(error) from error
    flush()


def flush() -> None:
    """Hand on what is buffered; afterwards the interpreter's own last flush has nothing to say.

    Raises:
        OSError: what lies behind standard output is full.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard()
    except OSError as error:
        raise _unwritable(error) from error


def _unwritable(error: OSError) -> OSError:
    """The error under a name that the user knows."""
    discard()
    return OSError(error.errno, error.strerror, STDOUT)


def is_stdout(path: str) -> bool:
    """Whether a path is another name of standard output: `-`, /dev/stdout, the file it goes to."""
    if path == "-":
        return True
    try:
        return os.path.samestat(Path(path).stat(), os.fstat(sys.stdout.fileno()))
    except (AttributeError, OSError, ValueError):
        return False


def warn(line: str) -> None:
    """Write a line to standard error, if there is one."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except (OSError, AttributeError):
        return


def discard() -> None:
    """Point standard output at nothing, so that the interpreter's last flush stays quiet."""
    if sys.stdout is not None:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)


def columns() -> int:
    """Width to fill: the terminal's or COLUMNS, 100 for a pipe or a file."""
    return shutil.get_terminal_size((100, 24)).columns


def colored(stream: TextIO | None) -> bool:
    """Whether to use colour: a terminal that can, and NO_COLOR is not set."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream is not None and stream.isatty()
