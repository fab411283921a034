import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.analysis.bins import (
    COARSE,
    FINE,
    coarser,
    log_ratio_code,
    magnitudes,
    position_bin,
    position_range,
    probability_bin,
    quadrant,
    representative,
)
from m2po_lab.analysis.bootstrap import BUCKETS, REPLICATES, bucket, hash_texts, poisson_weights
from m2po_lab.analysis.cells import SUM_COLUMNS, Cells
from m2po_lab.analysis.finish import statistics
from m2po_lab.analysis.grouped import group, terms
from m2po_lab.core.moments import sums
from m2po_lab.core.tails import largest, pareto_k, tail_length, top_count, top_share


def cells_of(d, keys, row=None, size=64, bits=COARSE) -> Cells:
    d, keys = np.asarray(d, dtype=float), np.asarray(keys)
    row = np.arange(d.size) if row is None else np.asarray(row)
    n_rows = int(row.max()) + 1 if row.size else 0
    return group(terms(d, row, np.arange(n_rows) % BUCKETS), keys, n_rows, size, bits)


log_ratios = st.lists(
    st.one_of(
        st.just(0.0),
        st.floats(-1e-6, 1e-6),
        st.floats(-3, 3),
        st.floats(-900, 900),
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(log_ratios, st.integers(0, 2**32))
def test_every_cell_equals_the_core_sums_of_its_tokens(values, seed):
    d = np.asarray(values)
    keys = np.random.default_rng(seed).integers(-2, 2, d.size)
    cells = cells_of(d, keys)
    for i, key in enumerate(cells.keys):
        inside = d[keys == key]
        expected = sums(inside, np.ones(inside.shape, dtype=bool), rows=inside.size)
        for name in SUM_COLUMNS:
            found = float(cells.field(name)[i])
            assert found == pytest.approx(float(getattr(expected, name)), rel=1e-12, abs=1e-13), (
                name
            )


@settings(max_examples=60, deadline=None)
@given(log_ratios, st.integers(1, 70))
def test_the_largest_values_of_a_cell_are_exact(values, size):
    d = np.asarray(values)
    cells = cells_of(d, np.zeros(d.size, dtype=int), size=size)
    for name, of in (("top", d), ("top_abs", np.abs(d))):
        found = cells.field(name)[0]
        expected = largest(of, np.ones(d.shape, dtype=bool), size).values
        assert found[np.isfinite(found)].tolist() == expected.tolist()


@settings(max_examples=40, deadline=None)
@given(log_ratios, log_ratios, st.integers(0, 99))
def test_cells_of_two_halves_merge_to_the_cells_of_both(first, second, seed):
    d = np.asarray(first + second)
    keys = np.random.default_rng(seed).integers(0, 3, d.size)
    row = np.arange(d.size)
    cut = len(first)
    merged = cells_of(d[:cut], keys[:cut])
    n_rows = d.size
    other = group(
        terms(d[cut:], row[cut:], np.arange(n_rows) % BUCKETS), keys[cut:], n_rows, 64, COARSE
    )
    merged.absorb(other)
    whole = cells_of(d, keys).take(merged.sorted_keys())
    found = merged.take(merged.sorted_keys())
    for name in whole.columns:
        one, other = found.field(name), whole.field(name)
        if name.startswith("bucket_log"):
            peak = other.max(axis=1, keepdims=True)
            one, other = np.exp(one - peak), np.exp(other - peak)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_cells_of_another_resolution_do_not_merge():
    with pytest.raises(ValueError, match="do not merge"):
        Cells(COARSE, 8).absorb(Cells(FINE, 8))


def test_beyond_the_kept_values_top_share_and_k_come_from_the_histogram_within_its_error():
    rng = np.random.default_rng(0)
    d = 0.3 * rng.standard_t(3, 50_000)
    order = np.sort(d)[::-1]
    size = np.sort(np.abs(d))[::-1]
    stats = statistics(cells_of(d, np.zeros(d.size, dtype=int), size=64, bits=FINE))[0]
    share = float(top_share(size[: top_count(d.size)], np.sum(d * d), d.size))
    assert stats["top1pct_m2_share"] == pytest.approx(share, rel=1e-3)
    k = float(pareto_k(order[: tail_length(d.size) + 1], d.size))
    assert stats["pareto_k"] == pytest.approx(k, abs=0.01)
    assert stats["abs_median"] == pytest.approx(np.quantile(np.abs(d), 0.5), rel=2**-8)
    assert stats["abs_p99"] == pytest.approx(np.quantile(np.abs(d), 0.99), rel=2**-8)


def test_where_all_values_are_kept_they_are_exact():
    d = np.asarray([0.5, -1.0, 2.0, -4.0, 0.0])
    stats = statistics(cells_of(d, np.zeros(5, dtype=int)))[0]
    assert stats["abs_median"] == 1.0
    assert stats["abs_p99"] == 4.0
    assert stats["top1pct_m2_share"] == pytest.approx(16 / 21.25)
    assert stats["pareto_k"] is None


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=40))
def test_log_ratio_bins_are_in_the_order_of_the_log_ratios(values):
    d = np.sort(np.asarray(values, dtype=float))
    for bits in (FINE, COARSE):
        assert np.all(np.diff(log_ratio_code(d, bits)) >= 0)
    np.testing.assert_array_equal(coarser(log_ratio_code(d)), log_ratio_code(d, COARSE))


@given(st.floats(6e-8, 6e4), st.sampled_from([FINE, COARSE]))
def test_a_bin_middle_is_within_the_stated_error(value, bits):
    code = int(log_ratio_code(np.asarray([value]), bits)[0]) - magnitudes(bits)
    assert representative(bits)[code] == pytest.approx(value, rel=2.0 ** -(bits + 1))


@given(st.integers(0, 2**40))
def test_a_position_lies_in_its_doubling_bin(position):
    low, high = position_range(int(position_bin(np.asarray([position]))[0]))
    assert low <= position <= high
    assert high < max(1, 2 * low)


def test_probability_bins_hold_their_lower_edge_and_the_last_one_holds_one():
    p = np.asarray([0.0, 1e-4, 0.0005, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0, 1.0001])
    with np.errstate(divide="ignore"):
        found = probability_bin(np.log(p))
    assert found.tolist() == [0, 1, 1, 2, 3, 4, 5, 6, 7, 7, 7]
    assert probability_bin(np.asarray([np.nan])).tolist() == [-1]


def test_bootstrap_weights_are_poisson_with_mean_one():
    weights = poisson_weights()
    assert weights.shape == (BUCKETS, REPLICATES)
    assert weights.mean() == pytest.approx(1.0, abs=0.02)
    assert weights.var() == pytest.approx(1.0, abs=0.03)
    correlation = np.corrcoef(weights.T)
    assert np.abs(correlation - np.eye(REPLICATES)).max() < 0.35


def test_row_hashes_spread_over_all_buckets():
    counts = np.bincount(bucket(hash_texts([f"step0/row{i}" for i in range(25_600)])))
    assert counts.size == BUCKETS
    assert counts.min() > 50
    assert counts.max() < 160


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for trial in range(120):
        scale = np.repeat(rng.gamma(4.0, 0.25, 150), 20)
        d = scale * rng.normal(0, 1, scale.size)
        row_bucket = bucket(hash_texts([f"{trial}/{i}" for i in range(150)]))
        row = np.repeat(np.arange(150), 20)
        cells = group(terms(d, row, row_bucket), np.zeros(d.size, dtype=int), 150, 64)
        stats = statistics(cells)[0]
        covered += stats["m2_low"] <= 1.25 <= stats["m2_high"]
    assert covered >= 102


def test_too_few_rows_give_no_interval():
    row = np.repeat(np.arange(7), 10)
    cells = cells_of(np.linspace(-1, 1, 70), np.zeros(70, dtype=int), row)
    stats = statistics(cells)[0]
    assert stats["m2_low"] is stats["m2_high"] is stats["ess_low"] is None
    assert stats["m2"] > 0


def test_every_token_with_a_finite_advantage_is_in_one_quadrant():
    d = np.asarray([0.1, 0.0, -0.1, 0.1, 0.0, -0.1, 0.1, 0.0, -0.1, 0.1, 0.1, 0.1])
    a = np.asarray([2.0, 2.0, 2.0, -1.0, -1.0, -1.0, 0.0, 0.0, -0.0, np.nan, np.inf, -np.inf])
    assert quadrant(d, a).tolist() == [0, 1, 1, 3, 3, 2, 4, 4, 4, 5, 5, 5]
    assert quadrant(d, None).tolist() == [5] * 12
