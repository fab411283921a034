import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.core.histogram import (
    DOWN,
    FIELDS,
    NEGATIVE,
    POSITIVE,
    QUADRANTS,
    UP,
    histogram,
)
from m2po_lab.core.selection import solve_threshold
from tests.conftest import asarray
from tests.core.selecting import batch_of

sizes = st.floats(2.0**-24, 2.0**15) | st.sampled_from([0.0, 1e-9, 5e-324, 1e6, 0.1, 0.5])
signed = st.builds(lambda size, sign: sign * size, sizes, st.sampled_from([1.0, -1.0]))
samples = st.lists(
    st.tuples(signed, st.sampled_from([1.5, -0.5, 0.0]), st.booleans()), min_size=1, max_size=40
).map(lambda rows: tuple(np.array(column) for column in zip(*rows, strict=True)))
quick = settings(deadline=None, max_examples=60)


def same(a, b, rtol=0.0):
    np.testing.assert_array_equal(a.count, b.count)
    for name in FIELDS[1:]:
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=rtol)


def drawn(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    d = 0.3 * rng.standard_t(3, n)
    d[: n // 10] = 0
    return d, rng.standard_normal(n), rng.random(n) < 0.9


@quick
@given(samples)
def test_counts_and_sums_are_those_of_the_tokens_by_quadrant(sample):
    d, a, keep = sample
    h = histogram(d, keep, a)
    rules = {
        "A>0,r>1": (a > 0) & (d > 0),
        "A>0,r<=1": (a > 0) & (d <= 0),
        "A<0,r<1": (a < 0) & (d < 0),
        "A<0,r>=1": (a < 0) & (d >= 0),
        "A=0": a == 0,
    }
    assert rules.keys() == QUADRANTS.keys()
    for name, rule in rules.items():
        view, chosen = h.quadrant(name), rule & keep
        assert view.n == chosen.sum()
        assert view.square.sum() == pytest.approx((d * d)[chosen].sum(), rel=1e-12)
        assert view.advantage_abs.sum() == pytest.approx(np.abs(a)[chosen].sum())
        assert view.advantage_square.sum() == pytest.approx((a * a)[chosen].sum())
    active = (rules["A>0,r>1"] | rules["A<0,r<1"]) & keep
    assert h.active().n == active.sum()
    assert h.n == keep.sum()


@quick
@given(samples, st.integers(0, 40))
def test_pieces_add_to_the_histogram_of_the_whole(sample, cut):
    d, a, keep = sample
    pieces = [histogram(*(v[s] for v in (d, keep, a))) for s in (slice(cut), slice(cut, None))]
    same(pieces[0] + pieces[1], histogram(d, keep, a), 1e-12)


@quick
@given(samples)
def test_every_magnitude_lies_between_the_edges_of_its_bin(sample):
    d, _, _ = sample
    h = histogram(d, np.ones(d.shape, dtype=bool))
    edges, count = h.edges(), h.count.sum(axis=(0, 1))
    assert (np.diff(edges) > 0).all()
    found = np.searchsorted(edges, np.sort(np.abs(d)), side="right") - 1
    np.testing.assert_array_equal(np.bincount(found, minlength=count.size), count)


@quick
@given(samples, st.integers(0, 7))
def test_a_coarser_histogram_is_that_of_fewer_mantissa_bits(sample, bits):
    d, a, keep = sample
    fine = histogram(d, keep, a)
    coarse = histogram(d, keep, a, mantissa_bits=bits)
    same(fine.coarser(bits), coarse, 1e-12)
    same(fine + coarse, coarse + coarse, 1e-12)


@quick
@given(samples, st.sampled_from([0.0, 0.25, 0.5, 0.9, 0.99, 1.0]), st.sampled_from([3, 7]))
def test_quantiles_are_within_the_stated_error(sample, q, bits):
    d = sample[0][np.abs(sample[0]) < 2.0**16]
    h = histogram(d, np.ones(d.shape, dtype=bool), mantissa_bits=bits)
    assert h.relative_error == 2.0**-bits
    if d.size:
        exact = np.quantile(np.abs(d), q)
        assert abs(h.quantile(q) - exact) <= h.relative_error * exact + 2.0**-24


def test_a_quantile_of_equal_values_or_zeros_is_exact():
    d = np.array([0.1, -0.1, 0.1, 0.0, 0.0, 0.0, 0.0])
    keep = np.ones(7, dtype=bool)
    h = histogram(d, keep)
    assert h.quantile(0.5) == 0.0
    assert h.quantile(1.0) == pytest.approx(0.1, rel=1e-15)
    assert h.quantile(0.55) == pytest.approx(np.quantile(np.abs(d), 0.55), rel=1e-12)


def test_an_empty_histogram_has_no_statistics():
    h = histogram(np.array([0.5]), np.array([False]), np.array([1.0]))
    assert h.n == 0
    assert all(math.isnan(v) for v in (h.m2, h.quantile(0.5), h.top_share()))
    bracket = h.budget_threshold(0.04)
    assert (bracket.active, bracket.masked.low, bracket.masked.high) == (0, 0, 0)
    assert math.isnan(bracket.m2_before)
    zeros = histogram(np.zeros(3), np.ones(3, dtype=bool))
    assert zeros.m2 == 0
    assert math.isnan(zeros.top_share())


@quick
@given(samples, st.floats(0, 0.9), st.floats(0, 5))
def test_clip_counts_bracket_the_true_ones(sample, eps_low, eps_high):
    d, a, keep = sample
    low, high = histogram(d, keep, a).clipped(eps_low, eps_high)
    below = int((keep & (a < 0) & (d < math.log1p(-eps_low))).sum())
    above = int((keep & (a > 0) & (d > math.log1p(eps_high))).sum())
    assert low.low <= below <= low.high
    assert high.low <= above <= high.high


def test_clip_brackets_are_tight_on_many_tokens():
    d, a, keep = drawn()
    h = histogram(d, keep, a)
    low, high = h.clipped(0.2, 0.28)
    assert 0 < low.high - low.low < 0.02 * low.high
    assert 0 < high.high - high.low < 0.02 * high.high
    assert h.exceed(math.inf, POSITIVE, UP).high == 0
    assert h.clipped(1.0, 0.2)[0].high == 0
    everything = h.exceed(0.0, NEGATIVE, DOWN)
    assert everything.low == everything.high == h.quadrant("A<0,r<1").n


@quick
@given(samples, st.floats(0, 4) | st.sampled_from([0.01, 0.25]))
def test_the_budget_bracket_holds_the_exact_threshold(sample, budget):
    d, a, keep = (v[None, :] for v in sample)
    exact = solve_threshold(batch_of(d, a, keep), budget)
    bracket = histogram(d, keep, a).budget_threshold(budget)
    assert bracket.active == exact.active
    assert bracket.masked.low <= exact.masked <= bracket.masked.high
    if exact.masked:
        cut = exact.log_ratio
        assert bracket.threshold_low * (1 - 1e-12) <= cut <= bracket.threshold_high
    if exact.active:
        assert bracket.m2_before == pytest.approx(exact.m2_before, rel=1e-12)


def test_the_budget_bracket_is_tight_on_many_tokens():
    d, a, keep = (v[None, :] for v in drawn())
    for budget in (0.001, 0.04, 0.2):
        exact = solve_threshold(batch_of(d, a, keep), budget).masked
        masked = histogram(d, keep, a).budget_threshold(budget).masked
        assert masked.low <= exact <= masked.high
        assert masked.high - masked.low <= 0.01 * exact + 3


@pytest.mark.parametrize("fraction", [0.01, 0.1, 1.0])
def test_the_top_share_is_near_that_of_the_sorted_squares(fraction):
    d, _, keep = drawn()
    square = np.sort((d * d)[keep])[::-1]
    exact = square[: math.ceil(fraction * square.size)].sum() / square.sum()
    assert histogram(d, keep).top_share(fraction) == pytest.approx(exact, rel=2e-3)


def test_every_library_gives_the_same_histogram(xp):
    d, a, keep = drawn(500)
    d, a, keep = (v.reshape(20, 25) for v in (d, a, keep))
    there = histogram(asarray(xp, d), asarray(xp, keep, "bool"), asarray(xp, a))
    here = histogram(d, keep, a)
    same(here, there)
    assert isinstance(there.count, np.ndarray)


@pytest.mark.parametrize("shape", [(400,), (20, 20), (4, 5, 20), (1, 400), (400, 1), (0, 3)])
def test_the_shape_and_what_is_not_kept_are_of_no_consequence(shape):
    d, a, keep = (v[: math.prod(shape)] for v in drawn(400))
    spoiled = np.where(keep, d, np.nan)
    shaped = histogram(spoiled.reshape(shape), keep.reshape(shape), a.reshape(shape))
    same(shaped, histogram(d, keep, a))


def test_a_histogram_pickles():
    d, a, keep = drawn(100)
    h = histogram(d, keep, a)
    same(pickle.loads(pickle.dumps(h)), h)


def test_what_cannot_be_asked_for_raises():
    h = histogram(np.ones(1), np.ones(1, dtype=bool), mantissa_bits=3)
    with pytest.raises(ValueError, match="unknown quadrant 'A>0'"):
        h.quadrant("A>0")
    with pytest.raises(ValueError, match="quantile 2 is outside"):
        h.quantile(2)
    with pytest.raises(ValueError, match="cannot be refined to 7"):
        h.coarser(7)
    with pytest.raises(ValueError, match="budget is nan"):
        h.budget_threshold(math.nan)
    with pytest.raises(ValueError, match="mantissa_bits is 21"):
        histogram(np.ones(1), np.ones(1, dtype=bool), mantissa_bits=21)
