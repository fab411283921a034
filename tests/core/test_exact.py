import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.core.exact import SCALE, Budget, mean, multiple
from m2po_lab.core.radix import BITS, SHIFT, Bins, smallest, table_of

floats = st.floats(0, 1e300) | st.sampled_from([0.0, 5e-324, 2.0**-1022, 0.04, 0.1, 1.0])


def key_of(value):
    return int(np.float64(value).view(np.int64))


def units(values):
    return sum(multiple(key_of(v)) for v in values)


@given(floats)
def test_a_key_stands_for_its_float_exactly(value):
    assert Fraction(multiple(key_of(value)), 1 << SCALE) == Fraction(value)


@given(st.lists(floats, min_size=1, max_size=20))
def test_the_mean_rounds_the_exact_sum_once_and_the_quotient_once(values):
    assert mean(units(values), len(values)) == math.fsum(values) / len(values)


def test_the_mean_of_nothing_is_nan_and_overflow_is_infinite():
    assert math.isnan(mean(0, 0))
    assert mean(units([1.7e308] * 2), 2) == math.inf


@given(st.lists(floats, min_size=1, max_size=12), floats, st.integers(0, 3))
def test_what_fits_may_fit_and_may_fit_is_a_prefix_of_the_ascending_squares(values, budget, exact):
    values.sort()
    bound = Budget(math.fsum(values[: exact + 1]) / (exact + 1) if exact < len(values) else budget)
    may = [bound.may_fit(units(values[:n]), n) for n in range(len(values) + 1)]
    fits = [bound.fits(units(values[:n]), n) for n in range(len(values) + 1)]
    assert may == sorted(may, reverse=True)
    assert all(m for m, f in zip(may, fits, strict=True) if f)


@given(st.lists(floats, max_size=5), floats, floats, st.integers(0, 6))
def test_most_ties_is_the_largest_number_that_may_fit(values, tied, budget, ties):
    bound, total, n = Budget(budget), units(values), len(values)
    if not bound.may_fit(total, n):
        return
    may = [k for k in range(ties + 1) if bound.may_fit(total + k * units([tied]), n + k)]
    assert bound.most_ties(total, n, key_of(tied), ties) == max(may)


@settings(deadline=None, max_examples=60)
@given(st.lists(floats | st.floats(0.1, 0.2), min_size=1, max_size=40))
def test_bins_count_and_add_exactly_in_any_split(values):
    values.sort()
    keys = np.array(values).view(np.int64)
    table = table_of(keys[::2], SHIFT, BITS) + table_of(keys[1::2], SHIFT, BITS)
    bins = Bins(table, 0, SHIFT)
    assert bins.below(bins.size) == (len(values), units(values))
    for index in range(bins.size):
        n, total = bins.below(index)
        assert total == units(values[:n])
        assert all(k < bins.key(index) for k in keys[:n].tolist())
        assert bins.holding(int(keys[n])) == index


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, (1 << 63) - 1) | st.integers(0, 9), min_size=1, max_size=30))
def test_the_smallest_by_rank_is_that_of_the_sorted_keys(keys):
    array = np.array(keys, dtype=np.int64)
    for rank, key in enumerate(sorted(keys), start=1):
        assert smallest(array, rank, lambda table: table) == key


@pytest.mark.parametrize("value", [0.1, 1e-310, 3.0])
def test_many_equal_floats_add_without_rounding(value):
    table = table_of(np.full(100_000, value).view(np.int64), SHIFT, BITS)
    _, total = Bins(table, 0, SHIFT).below(1)
    assert Fraction(total, 1 << SCALE) == 100_000 * Fraction(value)
