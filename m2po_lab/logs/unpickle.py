"""Pickles read without running anything: an allow-list of inert pieces, stand-ins for the rest."""

import io
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np

from m2po_lab.logs.errors import DamagedLogError, UnreadableLogError
from m2po_lab.logs.inert import Inert, stand_in
from m2po_lab.logs.numpy_pickle import NUMPY_PIECES, NumpyArray, finished

_HARMLESS = {
    "argparse",
    "array",
    "collections",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "ipaddress",
    "pathlib",
    "re",
    "types",
    "uuid",
    "zoneinfo",
}
"""Standard modules whose objects occur in logs; they become stand-ins like any foreign class."""


_STANDARD = {*sys.stdlib_module_names, "__builtin__", "copy_reg", "nt", "posix"}
_DEPTH = 200


class RefusedPickleError(Exception):
    """A pickle that names a function which could act on the machine."""


def _latin1(text: Any, encoding: Any = "latin1") -> bytes:
    """Bytes as old pickles hold them: `_codecs.encode(text, "latin1")`."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise RefusedPickleError(f"_codecs.encode with {encoding!r}")
    return text.encode("latin1")


def _byte_array(data: Any = b"", *_: Any) -> bytes:
    """Bytes or a bytearray, of bytes only: of a number they would claim memory."""
    return bytes(data) if isinstance(data, bytes | bytearray) else b""


def _reconstructed(cls: Any, base: Any, state: Any) -> Any:
    """`copyreg._reconstructor` for stand-ins."""
    return cls() if isinstance(cls, type) and issubclass(cls, Inert) else Inert(cls, base, state)


_BUILTINS: Mapping[str, Callable[..., Any]] = {
    "set": set,
    "frozenset": frozenset,
    "list": list,
    "dict": dict,
    "tuple": tuple,
    "complex": complex,
    "object": Inert,
    "bytearray": _byte_array,
    "bytes": _byte_array,
}

PIECES: Mapping[tuple[str, str], Any] = {
    **{(module, n): f for module in ("builtins", "__builtin__") for n, f in _BUILTINS.items()},
    ("collections", "OrderedDict"): OrderedDict,
    ("_codecs", "encode"): _latin1,
    ("copyreg", "_reconstructor"): _reconstructed,
    ("copy_reg", "_reconstructor"): _reconstructed,
    **NUMPY_PIECES,
}
"""What a pickle may name and get: our own functions and containers, nothing that acts."""


class SafeUnpickler(pickle.Unpickler):
    """An unpickler that imports nothing.

    A name on the list gives its piece; a name of the standard library that is not known to be
    harmless refuses the file; any other name gives a stand-in that keeps what was stored.
    """

    pieces: Mapping[tuple[str, str], Any] = PIECES

    def find_class(self, module: str, name: str) -> Any:
        """Resolve a name without importing it.

        Raises:
            RefusedPickleError: a name of the standard library that is not harmless.
        """
        if (module, name) in self.pieces:
            return self.pieces[module, name]
        root = module.partition(".")[0]
        standard = root in sys.stdlib_module_names or root in (
            "__builtin__",
            "nt",
            "posix",
            "__main__",
        )
        if standard and root != "__main__" and root not in _HARMLESS:
            raise RefusedPickleError(f"{module}.{name}")
        return stand_in(module, name)


def load_pickle(stream: IO[bytes], address: str) -> Any:
    """Read one pickle; arrays come as numpy, foreign objects as `Inert`.

    Raises:
        UnreadableLogError: the file is cut short or broken, or asks for something that could act.
    """
    return guarded(lambda: SafeUnpickler(stream).load(), address)


def load_pickle_bytes(data: bytes, address: str) -> Any:
    """Read one pickle from memory; see `load_pickle`."""
    return load_pickle(io.BytesIO(data), address)


def guarded(load: Callable[[], Any], address: str) -> Any:
    """Run a load and turn whatever a broken or hostile file raises into one line."""
    try:
        return simplified(load())
    except RefusedPickleError as error:
        raise UnreadableLogError(
            address,
            f"asks for {error}, which no log needs; nothing of it was run",
            "do not open this file with pickle or torch.load",
        ) from None
    except UnreadableLogError:
        raise
    except Exception as error:  # what a broken pickle raises is up to its bytes
        raise DamagedLogError(
            address, f"no complete pickle ({type(error).__name__}: {error})", "copy it again"
        ) from None


def simplified(value: Any) -> Any:
    """Replace what the numpy pieces left by finished arrays, throughout lists, tuples and dicts.

    A container that a pickle refers to many times is looked at once.
    """
    return _Simplifier().visit(value, 0)


class _Simplifier:
    """One walk through what a pickle held."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._done: dict[int, Any] = {}
        self._alive: list[Any] = []

    def visit(self, value: Any, depth: int) -> Any:
        """The value with finished arrays.

        Raises:
            ValueError: deeper than any log is.
        """
        if isinstance(value, np.generic):
            return value.item()
        if not isinstance(value, NumpyArray | dict | list | tuple | Inert):
            return value
        if depth > _DEPTH:
            raise ValueError("nested too deeply")
        if id(value) not in self._done:
            self._alive.append(value)  # an id is only good as long as its object lives
            self._done[id(value)] = self._container(value, depth + 1)
        return self._done[id(value)]

    def _container(self, value: Any, depth: int) -> Any:
        """A container with finished content."""
        if isinstance(value, NumpyArray):
            return self.visit(finished(value), depth)
        if isinstance(value, dict):
            return {_key(k): self.visit(v, depth) for k, v in value.items()}
        if isinstance(value, list):
            return [self.visit(item, depth) for item in value]
        if isinstance(value, tuple):
            return tuple(self.visit(item, depth) for item in value)
        value.state = self.visit(value.state, depth)
        value.args = self.visit(value.args, depth)
        return value


def _key(key: Any) -> Any:
    """Keys that can be looked up: numbers and texts as they are, anything else as text."""
    return key if isinstance(key, str | int | float | bool | None | tuple) else repr(key)


def load_torch(data: bytes | IO[bytes], address: str) -> Any:
    """Read a `torch.save` archive; tensors come as numpy arrays, jagged ones as lists of arrays.

    Raises:
        UnreadableLogError: torch is not installed; no archive, TorchScript, cut short, or hostile.
    """
    from m2po_lab.logs.torch_pickle import load_archive

    stream = io.BytesIO(data) if isinstance(data, bytes) else data
    return guarded(lambda: load_archive(stream, address), address)
