"""Files that are whole or not there."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np

from toy_envs.policy import State


def write_whole(place: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write beside the place, flush to the disk, rename.

    Args:
        place: the file; its directory is made if it does not exist.
        write: gets the open file.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    hidden = place.with_name(f".{place.name}.tmp-{os.getpid()}")
    try:
        with hidden.open("wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        hidden.replace(place)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise


def write_bytes(place: Path, data: bytes) -> None:
    """Write a file whole; see `write_whole`."""
    write_whole(place, lambda stream: stream.write(data))


def save_arrays(place: Path, arrays: State) -> None:
    """Write arrays as one .npz file; the same arrays give the same bytes."""
    write_whole(place, lambda stream: np.savez(stream, **arrays))  # type: ignore[arg-type]


def load_arrays(place: Path) -> State:
    """Read what `save_arrays` wrote; nothing is unpickled."""
    with np.load(place, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
