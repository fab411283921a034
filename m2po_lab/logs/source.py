"""One file of a log: where it lies, what its first bytes are, how to open it decompressed."""

import gzip
import io
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

import fsspec
import pyarrow as pa

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
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
    """

    path: str
    address: str
    protocol: str = "file"
    root: str = ""
    storage: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

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
        if self._magic.startswith(GZIP):
            return io.BufferedReader(gzip.GzipFile(fileobj=self._raw()), 1 << 20)
        if self._magic.startswith(ZSTD):
            stream = pa.CompressedInputStream(pa.PythonFile(self._raw(), mode="r"), "zstd")
            return cast(IO[bytes], io.BufferedReader(_Raw(stream), 1 << 20))
        return self._raw()

    def open_seekable(self) -> IO[bytes]:
        """Open the content for random access; compressed content is held in memory."""
        if self._magic.startswith((GZIP, ZSTD)):
            with self.open() as stream:
                return io.BytesIO(stream.read())
        return self._raw()

    @cached_property
    def head(self) -> bytes:
        """The first 64 kB of the content; what could be read if the file ends early."""
        with self.open() as stream:
            return read_up_to(stream, HEAD_BYTES)

    @property
    def step(self) -> tuple[int, str] | None:
        """Step that the file or a directory is named after, and the name: `7.jsonl`, `step_7/`."""
        if found := _NAMED_STEP.search(self.stem):
            return int(found[1]), f"file name {self.name}"
        if self.stem.isdecimal():
            return int(self.stem), f"file name {self.name}"
        inside = len(self.folders) - len(PurePosixPath(self.root).parts) + 1 if self.root else 1
        for depth, folder in enumerate(self.folders[:4]):
            if found := _NAMED_STEP.search(folder):
                return int(found[1]), f"directory {folder}"
            if folder.isdecimal() and depth < inside:
                return int(folder), f"directory {folder}"
        return None


class _Raw(io.RawIOBase):
    """A pyarrow stream as a Python raw stream, so that it can be buffered and read by lines."""

    def __init__(self, stream: Any) -> None:
        """Wrap the stream."""
        self._stream = stream

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the stream goes."""
        piece = self._stream.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the stream below too."""
        self._stream.close()
        super().close()


def read_up_to(stream: IO[bytes], size: int) -> bytes:
    """Read `size` bytes or as many as there are; a compressed stream cut short ends, not fails."""
    pieces: list[bytes] = []
    left = size
    while left > 0:
        try:
            piece = stream.read(min(left, 8192))
        except (EOFError, OSError):
            break
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
