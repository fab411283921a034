"""The one hook through which a compiled kernel may replace a numpy loop.

Nothing here imports a compiler: a kernel is looked up by name in one literal table and loaded when
an input is large enough to repay it. Without numba, with `M2PO_LAB_KERNELS=0` in the environment,
or after `use_kernels(False)`, numpy does the work and gives the same bits.
"""

import importlib
import importlib.util
import os
from collections.abc import Callable
from typing import Any

KERNELS = {
    "selection.tally": "m2po_lab.kernels.selection:tally",
    "selection.collect": "m2po_lab.kernels.selection:collect",
    "selection.mark": "m2po_lab.kernels.selection:mark",
    "histogram.add": "m2po_lab.kernels.histogram:add",
}
"""Hook name -> "module:function"; the function has the signature of the numpy one it replaces."""
COMPILER = "numba"
SWITCH = "M2PO_LAB_KERNELS"
LOAD_FROM = 1 << 27
"""Tokens in one call from which loading pays: it takes seconds and saves nanoseconds a token."""
USE_FROM = 1 << 14
"""Tokens in one call from which a kernel that is loaded already is used."""

_loaded: dict[str, Callable[..., Any]] = {}
_switch: dict[str, bool | None] = {"on": None}


def kernels_enabled() -> bool:
    """Whether compiled kernels may be used: switched on, and the compiler is installed."""
    on = _switch["on"]
    if on is None:
        on = os.environ.get(SWITCH, "1") not in ("0", "false", "no", "off")
    return on and importlib.util.find_spec(COMPILER) is not None


def use_kernels(on: bool | None) -> None:
    """Allow or forbid compiled kernels in this process; None goes back to the environment."""
    _switch["on"] = on


def kernel(name: str, size: int) -> Callable[..., Any] | None:
    """Return the compiled function for an input of this size, None where numpy is to do it.

    Args:
        name: key of KERNELS.
        size: how many tokens the whole call is about.

    Raises:
        ValueError: unknown name.
    """
    if name not in KERNELS:
        raise ValueError(f"unknown kernel {name!r}; one of {', '.join(KERNELS)}")
    if size < (USE_FROM if name in _loaded else LOAD_FROM) or not kernels_enabled():
        return None
    return load_kernel(name)


def load_kernel(name: str) -> Callable[..., Any]:
    """Import a kernel whatever the size of the input: for a long-running process, and for tests."""
    if name not in _loaded:
        module, function = KERNELS[name].split(":")
        _loaded[name] = getattr(importlib.import_module(module), function)
    return _loaded[name]
