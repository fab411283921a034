"""Bit pattern of a float64 in compiled code, and how the kernels are compiled."""

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _bits_of(_context: Any, _value: Any) -> Any:
    """Reinterpret a float64 as an int64."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


bits_of: Any = intrinsic(_bits_of)
_jit: Any = numba.njit


def compiled(function: Any) -> Any:
    """Compile on first use; keep the machine code on disk where a place for it can be found.

    No fast-math: a kernel must give the bits that numpy gives.
    """
    try:
        return _jit(cache=True)(function)
    except RuntimeError:
        return _jit(function)
