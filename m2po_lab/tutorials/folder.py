"""The notebooks as files: where they are, and how they get into a folder of the user's."""

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

RECORD = ".m2po-lab-notebooks.json"
"""Notebook -> hash of what was put there, so that a changed one is known and left alone."""


@dataclass(frozen=True)
class Copied:
    """What happened to the notebooks.

    Attributes:
        written: those that are new, or were as they had been put there.
        kept: those that the user has changed and that differ from the ones of this version.
        same: those that are there already, as they are in this version.
    """

    written: tuple[str, ...]
    kept: tuple[str, ...]
    same: tuple[str, ...]


def notebooks() -> list[Path]:
    """The notebooks of this version, in order.

    Raises:
        FileNotFoundError: the package was installed without them.
    """
    inside = Path(__file__).resolve().parent / "notebooks"
    checkout = Path(__file__).resolve().parents[2] / "notebooks"
    for place in (inside, checkout):
        if found := sorted(place.glob("[0-9][0-9]_*.ipynb")):
            return found
    raise FileNotFoundError(
        f"{inside} holds no notebooks; install m2po-lab from its wheel or its repository"
    )


def copy(folder: Path, *, force: bool = False) -> Copied:
    """Put the notebooks into a folder; one that the user has changed stays as it is.

    Args:
        folder: made if need be.
        force: replace changed ones too.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = _record(folder)
    written, kept, same = [], [], []
    for source in notebooks():
        place, content = folder / source.name, source.read_bytes()
        there = place.read_bytes() if place.exists() else None
        if there == content:
            same.append(source.name)
        elif there is None or force or _mark(there) == record.get(source.name):
            place.write_bytes(content)
            written.append(source.name)
        else:
            kept.append(source.name)
            continue
        record[source.name] = _mark(content)
    (folder / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return Copied(tuple(written), tuple(kept), tuple(same))


def _record(folder: Path) -> dict[str, str]:
    """What was put there before; nothing if that is unknown or unreadable."""
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _mark(content: bytes) -> str:
    return sha256(content).hexdigest()
