"""One file of a log: where it lies, what its first bytes are, how to open it decompressed."""

import io
import re
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

import fsspec

from m2po_lab.logs.inflate import BROKEN, inflated, is_compressed, read_up_to

HEAD_BYTES = 65_536
COMPRESSED_SUFFIXES = (".gz", ".zst", ".zstd")

_NAMED_STEP = re.compile(
    r"(?:^|[._-])(?:global_?step|train_data_step|step|completions|iteration|iter)s?[._-]?(\d+)(?=$|[._-])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Source:
    """A file on any fsspec file system, decompressed on the way if its first bytes say so.

    Args:
        path: path on the file system, without the protocol.
        address: what to call it in messages: the path or address as the user would write it.
        protocol: fsspec protocol; "file" for a local file.
        root: directory that the search started in ("" for a file named itself); bare numbers in
            directory names above it are not read as steps.
        storage: options of the file system.
        seen: what detection has parsed of the content, until `forget`.
    """

    path: str
    address: str = field(compare=False)
    protocol: str = "file"
    root: str = field(default="", compare=False)
    storage: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    seen: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """File name without the suffix of a compression."""
        name = PurePosixPath(self.path).name
        for suffix in COMPRESSED_SUFFIXES:
            name = name.removesuffix(suffix)
        return name

    @property
    def stem(self) -> str:
        """File name without its suffixes: `7` of `7.jsonl.gz`."""
        head, dot, _ = self.name.rpartition(".")
        return head if dot and head else self.name

    @property
    def folders(self) -> tuple[str, ...]:
        """Names of the directories above, the nearest first."""
        return tuple(reversed(PurePosixPath(self.path).parent.parts))

    @property
    def is_local(self) -> bool:
        """Whether the file can be opened by its path."""
        return self.protocol == "file"

    def _raw(self) -> IO[bytes]:
        """Open the file as it lies there."""
        if self.is_local:
            return Path(self.path).open("rb")
        system = fsspec.filesystem(self.protocol, **self.storage)
        return cast(IO[bytes], system.open(self.path, "rb"))

    @cached_property
    def _magic(self) -> bytes:
        """First four bytes as they lie there."""
        with self._raw() as stream:
            return stream.read(4)

    def open(self) -> IO[bytes]:
        """Open the content from its start, decompressed; seekable only if it was raw."""
        magic = self._magic  # before opening: some file systems share one position among openings
        raw = self._raw()
        return inflated(raw, magic) if is_compressed(magic) else raw

    @property
    def is_compressed(self) -> bool:
        """Whether the content is gzip or zstd."""
        return is_compressed(self._magic)

    @property
    def is_cut(self) -> bool:
        """Whether the content is compressed and ends before its first byte is out."""
        if not self.is_compressed:
            return False
        try:
            with self.open() as stream:
                stream.read(1)
        except BROKEN:
            return True
        return False

    def open_seekable(self) -> IO[bytes]:
        """Open the content for random access; compressed content is held in memory."""
        if self.is_compressed:
            with self.open() as stream:
                return io.BytesIO(read_up_to(stream, sys.maxsize))
        return self._raw()

    @cached_property
    def head(self) -> bytes:
        """The first 64 kB of the content; what could be read if the file ends early."""
        with self.open() as stream:
            return read_up_to(stream, HEAD_BYTES)

    def forget(self) -> None:
        """Let go of the content that detection has looked at."""
        self.seen.clear()
        self.__dict__.pop("head", None)

    def has_sibling(self, name: str) -> bool:
        """Whether a file of that name lies in the same directory."""
        path = str(PurePosixPath(self.path).parent / name)
        if self.is_local:
            return Path(path).exists()
        return bool(fsspec.filesystem(self.protocol, **self.storage).exists(path))

    @property
    def step(self) -> tuple[int, str] | None:
        """Step that the file or a directory is named after, and the name: `7.jsonl`, `step_7/`."""
        if found := _NAMED_STEP.search(self.stem):
            return int(found[1]), "file name"
        if self.stem.isdecimal():
            return int(self.stem), "file name"
        inside = len(self.folders) - len(PurePosixPath(self.root).parts) + 1 if self.root else 1
        for depth, folder in enumerate(self.folders[:4]):
            if found := _NAMED_STEP.search(folder):
                return int(found[1]), "directory name"
            if folder.isdecimal() and depth < inside:
                return int(folder), "directory name"
        return None
