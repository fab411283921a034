"""Fixtures shared by every test: one law, three array libraries."""

import importlib.util
import os
from types import ModuleType
from typing import Any

import numpy as np
import pytest

LIBRARIES = {
    "numpy": ("numpy", "array_api_compat.numpy"),
    "torch": ("torch", "array_api_compat.torch"),
    "strict": ("array_api_strict", "array_api_strict"),
}


def load(library: str) -> ModuleType:
    """Import an array library; skip the test where it is absent, fail in CI."""
    package, namespace = LIBRARIES[library]
    if importlib.util.find_spec(package) is None:
        message = f"{package} is not installed; make test installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return importlib.import_module(namespace)


@pytest.fixture(params=LIBRARIES)
def xp(request: pytest.FixtureRequest) -> ModuleType:
    """Give the namespace of each array library in turn."""
    return load(request.param)


def asarray(xp: ModuleType, values: Any, dtype: str | None = "float64") -> Any:
    """Make an array of `xp` from nested lists or numpy; `dtype` is a name such as "bool"."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    return xp.asarray(values, dtype=None if dtype is None else getattr(xp, dtype))


def to_numpy(array: Any) -> np.ndarray:
    """Copy an array of any library to numpy, dropping gradients, bfloat16 as float32."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        if str(array.dtype) == "torch.bfloat16":
            array = array.float()
        return np.array(array.numpy())
    if type(array).__module__.startswith("array_api_strict"):
        return np.array(array._array)
    return np.array(array)
