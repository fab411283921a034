"""The passes for accelerators, on CPU tensors: the same integers as on numpy memory."""

import numpy as np
import pytest
from hypothesis import given, settings

from m2po_lab.core import binning, selection_device, selection_keys, selection_parts, selection_scan
from m2po_lab.core.selection import apply, solve_threshold
from m2po_lab.core.selection_scan import host_columns, raw_columns
from tests.conftest import load, to_numpy
from tests.core.selecting import batch_of, naive, problems


@settings(deadline=None, max_examples=60)
@given(problems())
def test_every_pass_gives_what_the_host_pass_gives(problem):
    d, a, keep, budget = problem
    tokens = batch_of(d, a, keep, load("torch"))
    here, there = host_columns(tokens, "current/behavior"), raw_columns(tokens, "current/behavior")
    np.testing.assert_array_equal(
        selection_scan.tally(here), to_numpy(selection_device.tally(there))
    )
    for name, arguments in (
        ("collect", (0, 1 << 62)),
        ("collect", (1 << 61, (1 << 62) + (1 << 50))),
        ("ties", (float((d * d).ravel()[0]),)),
        ("mark", (budget,)),
        ("non_finite", ()),
    ):
        np.testing.assert_array_equal(
            getattr(selection_scan, name)(here, *arguments),
            to_numpy(getattr(selection_device, name)(there, *arguments)),
        )


@pytest.mark.parametrize("few", [-1, selection_keys.FEW])
@settings(deadline=None, max_examples=60)
@given(problem=problems())
def test_the_whole_selection_on_the_device_is_algorithm_1(few, problem):
    d, a, keep, budget = problem
    tokens = batch_of(d, a, keep, load("torch"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection_parts, "DEVICES", ("cpu",))
        patch.setattr(selection_keys, "FEW", few)
        threshold = solve_threshold(tokens, budget)
        mask = apply(tokens, threshold)
    np.testing.assert_array_equal(to_numpy(mask), naive(d, a, keep, budget))
    assert repr(threshold) == repr(solve_threshold(tokens, budget))


def test_non_finite_tokens_are_found_on_the_device():
    d = np.array([[0.1, np.inf], [np.nan, 0.1]])
    tokens = batch_of(d, np.ones_like(d), np.ones_like(d, dtype=bool), load("torch"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection_parts, "DEVICES", ("cpu",))
        with pytest.raises(ValueError, match=r"2 kept tokens .* in rows 0, 1"):
            solve_threshold(tokens, 0.04)


@settings(deadline=None, max_examples=60)
@given(problems())
def test_the_histogram_on_the_device_is_that_of_the_host(problem):
    d, a, keep, _ = problem
    xp = load("torch")
    tensors = [xp.asarray(v) for v in (d, keep, a)]
    for known in (True, False):
        here = binning.bin_host(d, keep, a if known else None, 7)
        there = binning.bin_device(*tensors[:2], tensors[2] if known else None, 7)
        np.testing.assert_array_equal(here[0], there[0])
        np.testing.assert_allclose(here[1], there[1], rtol=1e-12)
