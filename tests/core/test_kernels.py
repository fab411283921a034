"""The kernel hook: compiled code is optional, lazy, and gives the bits that numpy gives."""

import importlib.util
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from m2po_lab.core import TokenBatch, binning, kernels, selection_scan
from m2po_lab.core.histogram import FIELDS, histogram
from m2po_lab.core.selection import apply, solve_threshold

needs_numba = pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason="numba is not installed"
)
EXTREME = [0.0, -0.0, 5e-324, -1e-300, 1e-160, 1e-30, 0.2, -0.2, 1e3, -1e160, 1e200, 2.0**-24]


def inputs(kind, dtype):
    """Top, bottom, advantage, keep of one piece."""
    rng = np.random.default_rng(0)
    if kind == "empty":
        d = np.zeros(0)
    elif kind == "extreme":
        d = np.array([*EXTREME, np.nan, np.inf, -np.inf] * 7)
    else:
        d = 0.3 * rng.standard_t(3, 5000)
    bottom = np.zeros(d.shape) if kind == "extreme" else -rng.exponential(1, d.shape)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        top, bottom = (bottom + d).astype(dtype), bottom.astype(dtype)
    advantage = rng.choice([1.0, -0.5, 0.0], d.shape).astype(dtype)
    return top, bottom, advantage, rng.random(d.shape) < 0.8


kinds = pytest.mark.parametrize("kind", ["random", "empty", "extreme"])
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@needs_numba
@kinds
@dtypes
def test_the_compiled_tally_is_that_of_numpy(kind, dtype):
    piece = inputs(kind, dtype)
    tables = [np.zeros((selection_scan.TRASH + 1, 3), dtype=np.int64) for _ in range(2)]
    compiled = kernels.load_kernel("selection.tally")
    bad = [selection_scan.tally_piece(*piece, tables[0]), compiled(*piece, tables[1])]
    assert bad[0] == bad[1]
    assert (bad[0] > 0) == (kind == "extreme")
    np.testing.assert_array_equal(*(t[: selection_scan.TRASH] for t in tables))


@needs_numba
@kinds
@dtypes
def test_the_compiled_collection_is_that_of_numpy(kind, dtype):
    piece = inputs(kind, dtype)
    compiled = kernels.load_kernel("selection.collect")
    for low, high in ((0, 1 << 63), (1 << 61, 1 << 62), (5, 5)):
        bounds = low, min(high, (1 << 63) - 1)
        expected = selection_scan.collect_piece(*piece, *bounds)
        np.testing.assert_array_equal(compiled(*piece, *bounds), expected)


@needs_numba
@kinds
@dtypes
@pytest.mark.parametrize("value", [0.0, 0.04, np.inf])
def test_the_compiled_mask_is_that_of_numpy(kind, dtype, value):
    piece = inputs(kind, dtype)
    masks = [np.zeros(piece[0].shape, dtype=bool) for _ in range(2)]
    selection_scan.mark_piece(*piece, value, masks[0])
    kernels.load_kernel("selection.mark")(*piece, value, masks[1])
    np.testing.assert_array_equal(*masks)


@needs_numba
@kinds
@pytest.mark.parametrize("known", [True, False])
def test_the_compiled_histogram_is_that_of_numpy(kind, known):
    top, bottom, advantage, keep = inputs(kind, np.float64)
    with np.errstate(invalid="ignore"):
        d = top - bottom
    compiled = kernels.load_kernel("histogram.add")
    expected = binning.add_piece(d, keep, advantage, known, 7)
    for got, want in zip(compiled(d, keep, advantage, known, 7), expected, strict=True):
        np.testing.assert_array_equal(got, want)


@needs_numba
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5000,), (50, 100)])
def test_a_whole_solution_is_the_same_with_and_without_kernels(monkeypatch, dtype, shape):
    top, bottom, advantage, keep = (v.reshape(shape) for v in inputs("random", dtype))
    tokens = TokenBatch(
        current_logp=top,
        behavior_logp=bottom,
        advantage=advantage,
        keep=keep,
        lengths=np.array([5000]) if len(shape) == 1 else None,
    )
    results = []
    monkeypatch.setattr(kernels, "LOAD_FROM", 1)
    monkeypatch.setattr(kernels, "USE_FROM", 1)
    for on in (True, False):
        kernels.use_kernels(on)
        threshold = solve_threshold(tokens, 0.04)
        h = histogram(tokens.log_ratio(), keep, advantage)
        results.append((threshold, apply(tokens, threshold), h))
    kernels.use_kernels(None)
    (one, mask, counts), (other, same_mask, same_counts) = results
    assert one == other
    assert 0 < one.masked < one.active
    np.testing.assert_array_equal(mask, same_mask)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(counts, name), getattr(same_counts, name))


def test_every_entry_of_the_table_names_a_function():
    for name, address in kernels.KERNELS.items():
        module, function = address.split(":")
        source = importlib.util.find_spec(module.rpartition(".")[0])
        assert source is not None, name
        assert function.isidentifier()


def test_kernels_are_for_large_inputs_and_can_be_switched_off(monkeypatch):
    monkeypatch.setattr(kernels, "_loaded", {})
    monkeypatch.setattr(kernels, "load_kernel", lambda name: name)
    monkeypatch.setattr(kernels, "COMPILER", "json")
    large, name = kernels.LOAD_FROM, "selection.tally"
    assert kernels.kernel(name, large) == name
    assert kernels.kernel(name, large - 1) is None
    monkeypatch.setitem(kernels._loaded, name, len)
    assert kernels.kernel(name, kernels.USE_FROM) == name
    assert kernels.kernel(name, kernels.USE_FROM - 1) is None
    monkeypatch.setenv(kernels.SWITCH, "0")
    assert kernels.kernel(name, large) is None
    kernels.use_kernels(True)
    assert kernels.kernel(name, large) == name
    kernels.use_kernels(None)
    assert kernels.kernel(name, large) is None
    monkeypatch.delenv(kernels.SWITCH)
    monkeypatch.setattr(kernels, "COMPILER", "no_such_compiler")
    assert kernels.kernel(name, large) is None
    with pytest.raises(ValueError, match=r"unknown kernel 'x'; one of selection\.tally"):
        kernels.kernel("x", large)


def test_a_small_problem_loads_no_compiler():
    code = (
        "import sys, numpy as np\n"
        "from m2po_lab.core.selection import keep_m2po\n"
        "from m2po_lab.core.batch import TokenBatch\n"
        "from m2po_lab.core.histogram import histogram\n"
        "d = np.ones((2, 3))\n"
        "keep_m2po(TokenBatch(current_logp=d, behavior_logp=d * .5, advantage=np.ones(2)), .04)\n"
        "histogram(d, d > 0)\n"
        "loaded = {'numba', 'torch', 'scipy', 'pandas', 'llvmlite'} & set(sys.modules)\n"
        "sys.exit(str(loaded) if loaded else 0)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
