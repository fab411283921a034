"""Selections and quantiles against sorting, and the hash that draws tokens."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives.order import quantile, random_keys, row_quantile, top
from m2po_lab.core.objectives.tokens import Tokens
from tests.conftest import to_numpy
from tests.core.objectives.conftest import batch, columns, ragged


def view(keep):
    keep = np.asarray(keep, dtype=bool)
    zero = np.zeros(keep.shape)
    return Tokens(
        TokenBatch(current_logp=zero, behavior_logp=zero, advantage=zero, keep=keep), gradient=False
    )


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.integers(-3, 3), min_size=1, max_size=20),
    k=st.integers(0, 25),
    seed=st.integers(0, 99),
)
def test_the_top_k_are_those_of_a_stable_sort(values, k, seed):
    eligible = np.random.default_rng(seed).random((1, len(values))) < 0.7
    array = np.array([values], dtype=float)
    chosen = top(view(np.ones_like(eligible)), array, eligible, np.int64(k))
    order = [i for i in np.argsort(-array[0], kind="stable") if eligible[0, i]]
    np.testing.assert_array_equal(np.flatnonzero(chosen), sorted(order[:k]))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 999), q=st.floats(0, 1))
@example(seed=649, q=0.0)  # a row without a valid token
def test_quantiles_are_those_of_numpy(seed, q):
    rng = np.random.default_rng(seed)
    keep, values = rng.random((4, 6)) < 0.7, rng.normal(size=(4, 6))
    tokens = view(keep)
    expected = np.quantile(values[keep], q) if keep.any() else 0.0
    assert float(quantile(tokens, values, tokens.valid, q)) == pytest.approx(expected, abs=1e-12)
    per_row = [np.quantile(v[k], q) if k.any() else 0.0 for v, k in zip(values, keep, strict=True)]
    np.testing.assert_allclose(row_quantile(tokens, values, q), per_row, atol=1e-12)


def test_keys_are_a_function_of_the_token_and_not_of_the_layout_or_the_library(xp):
    values = columns()
    keys = random_keys(Tokens(batch(values), gradient=False), 3)
    theirs = random_keys(Tokens(batch(values, xp), gradient=False), 3)
    np.testing.assert_array_equal(to_numpy(theirs), keys)
    flat = random_keys(Tokens(ragged(values), gradient=False), 3)
    np.testing.assert_array_equal(flat, keys[values["keep"]])


def test_keys_look_uniform_and_change_with_the_seed():
    rng = np.random.default_rng(0)
    shape = (100, 100)
    values = {
        "current_logp": -np.abs(rng.normal(size=shape)),
        "behavior_logp": -np.abs(rng.normal(size=shape)),
        "advantage": np.zeros(shape),
    }
    tokens = Tokens(batch(values), gradient=False)
    keys = [random_keys(tokens, seed).ravel() / 2**32 for seed in (0, 1)]
    for key in keys:
        counts = np.histogram(key, bins=20, range=(0, 1))[0]
        # chi-square with 19 degrees of freedom; 43.8 is its 99.9 % point
        assert ((counts - 500) ** 2 / 500).sum() < 43.8
    assert abs(np.corrcoef(*keys)[0, 1]) < 0.04
