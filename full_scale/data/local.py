"""Local files: which path in what the user named holds a set."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from full_scale.data.files import SUFFIXES
from full_scale.data.sets import DataSet, known
from m2po_lab.logs.source import COMPRESSED_SUFFIXES


@dataclass(frozen=True)
class Given:
    """Where the user has files.

    Attributes:
        paths: set -> file, folder, glob or address.
        folders: folders whose entries are named after sets or their hub ids.
    """

    paths: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()

    def path(self, chosen: DataSet) -> str | None:
        """Path of a set; None if it is not among what was named."""
        if chosen.name in self.paths:
            return self.paths[chosen.name]
        for folder in self.folders:
            for name, path in _entries(folder):
                if known(name) == chosen:
                    return str(path)
        return None


def _entries(folder: Path) -> Iterator[tuple[str, Path]]:
    """Names and paths of the entries of a folder, `owner/name` below `owner` among them."""
    for path in sorted(folder.iterdir()):
        yield _stem(path), path
        if path.is_dir():
            for inner in sorted(path.iterdir()):
                yield f"{path.name}/{_stem(inner)}", inner


def _stem(path: Path) -> str:
    """Name without the suffixes of a kind of file and of a compression."""
    name = path.name
    if path.is_file():
        for suffix in (*COMPRESSED_SUFFIXES, *SUFFIXES):
            name = name.removesuffix(suffix)
    return name
