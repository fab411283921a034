"""Pickled numpy arrays, rebuilt from their parts: numpy's own restoring trusts what it is given."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PLAIN_KINDS = "biuf"


class NumpyDtype:
    """A pickled dtype: its name, then its byte order."""

    def __init__(self, name: Any = "", *_: Any) -> None:
        """Keep the name, such as "f8" or "O8"."""
        self.name = name if isinstance(name, str) else ""
        self.order = "="

    def __setstate__(self, state: Any) -> None:
        """Keep the byte order, the second entry of numpy's state."""
        if isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">", "|", "="):
            self.order = state[1]

    @property
    def is_object(self) -> bool:
        """Whether the entries are Python objects."""
        return self.name.startswith("O")

    def plain(self) -> np.dtype[Any]:
        """The numpy dtype, if it is one of plain numbers.

        Raises:
            ValueError: it is not.
        """
        dtype = np.dtype(self.name.lstrip("<>|="))
        if dtype.kind not in _PLAIN_KINDS + "SU" or dtype.fields is not None:
            raise ValueError(f"array of {self.name!r}")
        return dtype.newbyteorder(">") if self.order == ">" else dtype


class NumpyArray:
    """A pickled array: shape, dtype and content, not yet looked at."""

    def __init__(self) -> None:
        """Start empty."""
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        """Keep numpy's state: (version, shape, dtype, is_fortran, content)."""
        self.state = state


def _reconstruct(*_: Any) -> NumpyArray:
    """`numpy.core.multiarray._reconstruct`: an array to be filled."""
    return NumpyArray()


def _scalar(dtype: Any, data: Any = b"") -> Any:
    """`numpy.core.multiarray.scalar`: a number or a text."""
    if not isinstance(dtype, NumpyDtype):
        raise ValueError("scalar without dtype")
    if dtype.is_object:
        return data
    return np.frombuffer(data, dtype=dtype.plain())[0].item()


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any = "C") -> NumpyArray:
    """`numpy.core.numeric._frombuffer` of protocol 5."""
    array = NumpyArray()
    array.state = (1, shape, dtype, order == "F", bytes(data))
    return array


def finished(array: NumpyArray) -> NDArray[Any] | list[Any]:
    """The numpy array, or a (nested) list for an array of Python objects.

    Raises:
        ValueError: parts that do not fit together.
    """
    if not isinstance(array.state, tuple) or len(array.state) != 5:
        raise ValueError("array without content")
    _, shape, dtype, is_fortran, content = array.state
    if not isinstance(dtype, NumpyDtype) or not isinstance(shape, tuple):
        raise ValueError("array without dtype or shape")
    if dtype.is_object:
        if not isinstance(content, list) or len(content) != int(np.prod(shape)):
            raise ValueError("object array whose entries do not fit its shape")
        return _nested(content, shape)
    if isinstance(content, str):
        content = content.encode("latin1")
    flat = np.frombuffer(content, dtype=dtype.plain())
    return flat.reshape(shape, order="F" if is_fortran else "C")


def _nested(entries: Sequence[Any], shape: Sequence[int]) -> list[Any]:
    """Entries of an object array as nested lists."""
    if len(shape) <= 1:
        return list(entries)
    step = len(entries) // shape[0] if shape[0] else 0
    return [_nested(entries[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


NUMPY_PIECES: Mapping[tuple[str, str], Any] = {
    ("numpy", "ndarray"): NumpyArray,
    ("numpy", "dtype"): NumpyDtype,
    **{
        (f"numpy.{core}.multiarray", name): piece
        for core in ("core", "_core")
        for name, piece in (("_reconstruct", _reconstruct), ("scalar", _scalar))
    },
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
}
"""Names that pickled arrays use -> our own pieces."""
