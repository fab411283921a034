"""Whether a folder still holds what its manifest says, and what to do where it does not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from full_scale.data import manifest as manifests
from full_scale.data.prepare import FILES
from full_scale.data.rows import SCHEMA
from full_scale.errors import UnusableError


class Problem(NamedTuple):
    """What is wrong with prepared data.

    Attributes:
        place: folder or file.
        problem: what is wrong with it.
        remedy: what to do.
    """

    place: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.place}: {self.problem}; {self.remedy}"


def verify(folder: Path | str) -> list[Problem]:
    """Compare a prepared folder with its manifest: files, hashes, rows, columns, origins.

    Args:
        folder: what `m2po-lab data prepare --out` filled.

    Returns:
        Every problem with its remedy; none if a run can start from this folder.
    """
    return list(_problems(Path(folder)))


def _problems(folder: Path) -> Iterator[Problem]:
    again = f"m2po-lab data prepare --out {folder}"
    if not (folder / manifests.NAME).exists():
        yield Problem(str(folder), f"holds no {manifests.NAME}", again)
        return
    try:
        manifest = manifests.read(folder)
    except UnusableError as error:
        yield Problem(str(folder / manifests.NAME), str(error), f"remove it, then {again}")
        return
    for name, sets in FILES.items():
        entry = manifest["files"].get(name)
        if entry is None:
            yield Problem(str(folder / name), f"holds none of {', '.join(sets)}", again)
            continue
        yield from _of_file(folder / name, entry, again)
        for each, used in entry["made_of"].items():
            if used["sha256"] != manifest["sets"][each]["sha256"]:
                yield Problem(str(folder / name), f"was made of an older {each}", again)
    for name, entry in manifest["sets"].items():
        yield from _of_file(folder / entry["file"], entry, again)
        for other, digest in entry["made_with"]["compared_with"].items():
            if manifest["sets"][other]["sha256"] != digest:
                problem = f"{name} was compared with an older {other}"
                yield Problem(str(folder / entry["file"]), problem, again)


def _of_file(path: Path, entry: dict[str, Any], again: str) -> Iterator[Problem]:
    if not path.exists():
        yield Problem(str(path), "is not there", again)
    elif not manifests.is_intact(path, entry):
        yield Problem(str(path), "has other content than the manifest says", again)
    else:
        columns = pq.read_schema(path).names
        if missing := set(SCHEMA.names) - set(columns):
            yield Problem(str(path), f"has no column {', '.join(sorted(missing))}", again)
        elif not entry["rows"]:
            yield Problem(str(path), "has no row", again)
