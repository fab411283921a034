"""manifest.json: what a prepared folder holds, where it came from, and what was left out."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from full_scale.data.files import sha256
from full_scale.errors import UnusableError

NAME = "manifest.json"
SCHEMA = "m2po-lab/data/1"
TEMPORARY = ".m2po-"

Manifest = dict[str, Any]


def empty() -> Manifest:
    """Manifest of a folder that holds nothing yet."""
    return {"schema": SCHEMA, "files": {}, "sets": {}}


def read(folder: Path) -> Manifest:
    """Read the manifest of a folder; an empty one if there is none.

    Raises:
        UnusableError: it is no manifest of this kind.
    """
    path = folder / NAME
    if not path.exists():
        return empty()
    try:
        found = json.loads(path.read_bytes())
        schema = found["schema"]
    except (ValueError, TypeError, LookupError) as error:
        raise UnusableError(
            str(path), f"no manifest ({error})", "remove it, or name another folder"
        ) from error
    if schema != SCHEMA:
        raise UnusableError(str(path), f"schema {schema!r}, not {SCHEMA!r}", "name another folder")
    return dict(found)


def write(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Replace the manifest as a whole."""
    write_text(folder / NAME, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file as a whole."""
    whole(path, lambda place: place.write_text(text, encoding="utf-8"))


def write_table(path: Path, table: pa.Table) -> dict[str, Any]:
    """Write a Parquet file as a whole.

    Returns:
        Rows and hash, for the manifest.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    whole(path, lambda place: pq.write_table(table, place, compression="zstd"))
    return {"rows": table.num_rows, "sha256": sha256(path)}


def is_intact(path: Path, entry: Mapping[str, Any]) -> bool:
    """Whether a file is the one that an entry describes."""
    return path.exists() and sha256(path) == entry["sha256"]


def whole(path: Path, fill: Callable[[Path], object]) -> None:
    """Write beside the place, flush and rename, so that nobody meets half a file."""
    hidden = path.with_name(f"{TEMPORARY}{path.name}")
    fill(hidden)
    with hidden.open("rb") as stream:
        os.fsync(stream.fileno())
    hidden.replace(path)


def sweep(folder: Path) -> None:
    """Remove what a killed run left half written."""
    for path in folder.rglob(f"{TEMPORARY}*"):
        path.unlink()
