import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.analysis import Analysis, Options, Scanner, scan
from m2po_lab.core.batch import TokenBatch
from m2po_lab.integrity import checked
from tests.analysis.batches import make_batch
from tests.analysis.compare import close, rows_of


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.randoms(use_true_random=False))
def test_analyses_of_the_parts_merge_to_the_analysis_of_the_whole(seed, parts, random):
    batch = make_batch(seed)
    order = list(range(batch.n_rows))
    random.shuffle(order)
    owner = [random.randrange(parts) for _ in order]
    pieces = [
        scan([rows_of(batch, [i for i, o in zip(order, owner, strict=True) if o == p])])
        for p in range(parts)
    ]
    merged = Analysis()
    for piece in pieces:
        merged = merged + piece
    close(merged.to_dict(), scan([batch]).to_dict())


def test_the_order_of_batches_and_rows_changes_nothing():
    batches = [make_batch(seed) for seed in range(4)]
    shuffled = [rows_of(b, list(range(b.n_rows))[::-1]) for b in batches[::-1]]
    close(scan(batches).to_dict(), scan(shuffled).to_dict())


def test_merging_leaves_both_arguments_alone():
    first, second = scan([make_batch(1)]), scan([make_batch(2)])
    before = json.dumps(first.to_dict()), json.dumps(second.to_dict())
    assert first.merge(second).tokens["kept"] == first.tokens["kept"] + second.tokens["kept"]
    assert (json.dumps(first.to_dict()), json.dumps(second.to_dict())) == before


def test_the_same_log_gives_the_same_bytes():
    texts = {json.dumps(scan([make_batch(3)]).to_dict(), allow_nan=False) for _ in range(2)}
    assert len(texts) == 1


def test_analyses_with_different_options_do_not_merge():
    with pytest.raises(ValueError, match="same options"):
        scan([], Options(budget=0.1)).merge(scan([]))


def test_padded_and_ragged_layouts_give_the_same_report(batch):
    fields = {n: batch.to_padded(getattr(batch, n), False) for n in batch.present()}
    padded = TokenBatch(**fields, rows=batch.rows)
    first, second = scan([batch]).to_dict(), scan([padded]).to_dict()
    for name in ("tokens", "rows"):
        assert first[name]["kept"] == second[name]["kept"]
        del first[name], second[name]
    close(first, second)


def test_nothing_read_is_a_report_without_numbers():
    report = scan([]).to_dict()
    assert report["primary"] is None
    assert report["ratios"] == {}
    assert report["tokens"]["kept"] == 0


def test_a_log_without_a_kept_token_has_only_nulls(batch):
    report = scan([batch.replace(keep=np.zeros(batch.shape, dtype=bool))]).to_dict()
    assert (report["rows"]["read"], report["rows"]["kept"]) == (40, 0)
    stats = report["ratios"]["current/behavior"]["all"]
    assert (stats["n"], stats["rows"]) == (0, 0)
    assert all(value is None for name, value in stats.items() if name not in {"n", "rows"})


def test_without_advantages_what_depends_on_them_is_null():
    report = scan([make_batch(0, advantages=False)]).to_dict()
    ratio = report["ratios"]["current/behavior"]
    assert ratio["active"] is ratio["nonzero_advantage"] is ratio["by_quadrant"] is None
    assert ratio["all"]["n"] == report["tokens"]["kept"]


def test_unknown_versions_leave_only_the_lag_table(batch):
    version = np.where(np.arange(batch.shape[0]) % 2 == 0, -1, batch.version)
    report = scan([batch.replace(version=version)]).to_dict()
    ratio = report["ratios"]["current/behavior"]
    known = int(np.sum(batch.keep & (version >= 0)))
    assert sum(cell["n"] for cell in ratio["by_lag"]) == known
    assert sum(cell["n"] for cell in ratio["by_step"]) == ratio["all"]["n"]


def test_every_table_partitions_the_tokens(batch):
    ratio = scan([batch]).to_dict()["ratios"]["proximal/behavior"]
    n = ratio["all"]["n"]
    assert sum(cell["n"] for cell in ratio["by_quadrant"].values()) == n
    for name in ("by_step", "by_lag", "by_position", "by_probability"):
        assert sum(cell["n"] for cell in ratio[name]) == n
    active = ratio["by_quadrant"]["A>0,r>1"]["n"] + ratio["by_quadrant"]["A<0,r<1"]["n"]
    assert ratio["active"]["n"] == active
    assert ratio["nonzero_advantage"]["n"] == n - ratio["by_quadrant"]["A=0"]["n"]


def test_gaussian_log_ratios_give_their_closed_forms():
    rng = np.random.default_rng(0)
    mu, sigma, n = -0.02, 0.2, 100_000
    behavior = -3 - rng.exponential(1.0, (200, n // 200))
    batch = TokenBatch(
        behavior_logp=behavior, current_logp=behavior + rng.normal(mu, sigma, behavior.shape)
    )
    stats = scan([batch]).to_dict()["ratios"]["current/behavior"]["all"]
    assert stats["m2"] == pytest.approx(mu**2 + sigma**2, rel=0.01)
    assert stats["ess_fraction"] == pytest.approx(np.exp(-(sigma**2)), rel=0.003)
    assert stats["chi2"] == pytest.approx(np.exp(2 * mu + 2 * sigma**2) - 1, rel=0.05)
    assert stats["abs_median"] == pytest.approx(0.6745 * sigma, rel=0.02)
    assert stats["m2_low"] < mu**2 + sigma**2 < stats["m2_high"]


def test_a_token_that_is_not_finite_counts_nowhere_and_is_reported(batch):
    proximal = batch.proximal_logp.copy()
    proximal[np.flatnonzero(batch.keep)[:5]] = [np.nan, np.inf, -np.inf, np.nan, np.nan]
    whole = scan([batch]).to_dict()
    report = scan([batch.replace(proximal_logp=proximal)]).to_dict()
    assert report["tokens"]["excluded"]["non_finite"] == 5
    assert report["ratios"]["current/behavior"]["all"]["n"] == whole["tokens"]["kept"] - 5


def test_a_pickled_analysis_gives_the_same_report_and_merges():
    first, second = scan([make_batch(1)]), scan([make_batch(2)])
    copy = pickle.loads(pickle.dumps(first))
    assert copy.to_dict() == first.to_dict()
    close(copy.merge(second).to_dict(), first.merge(second).to_dict())


def test_changing_a_report_changes_no_later_one():
    analysis = scan([make_batch(1)])
    analysis.to_dict()["ratios"].clear()
    assert analysis.to_dict()["ratios"]


def test_a_scanner_can_be_asked_between_batches():
    batches = [make_batch(seed) for seed in range(3)]
    scanner = Scanner(Options())
    for number, (clean, evidence) in enumerate(checked(batches), start=1):
        scanner.add(clean, evidence)
        scanner.flush()
        close(scanner.analysis.to_dict(), scan(batches[:number]).to_dict())


def test_a_ratio_whose_columns_are_shifted_by_a_token_has_no_statistics():
    batch = make_batch(0, rows=60, scale=0.01)
    shifted = batch.replace(behavior_logp=np.roll(batch.behavior_logp, 1))
    report = scan([shifted]).to_dict()
    assert list(report["ratios"]) == ["current/proximal"]
    assert report["primary"] == "current/proximal"
    needs = {entry["what"]: entry["needs"] for entry in report["not_computable"]}
    assert "shift" in needs["ratios/current/behavior"]


def test_sums_that_leave_float64_are_null_and_listed():
    behavior = np.full(40, -900.0)
    batch = TokenBatch(
        behavior_logp=behavior,
        current_logp=np.full(40, -1.0),
        lengths=np.full(20, 2),
    )
    report = scan([batch]).to_dict()
    stats = report["ratios"]["current/behavior"]["all"]
    assert stats["m2"] == 899.0**2
    assert stats["ess_fraction"] == pytest.approx(1.0)
    assert stats["chi2"] is stats["ratio_max"] is None
    missing = {entry["what"] for entry in report["not_computable"]}
    assert "ratios/current/behavior/all/chi2" in missing


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_a_torch_batch_gives_the_report_of_its_numbers(batch, dtype):
    torch = pytest.importorskip("torch")
    floats = ("behavior_logp", "current_logp", "advantage")
    tensors = {n: torch.tensor(getattr(batch, n)).to(getattr(torch, dtype)) for n in floats}
    tensors["current_logp"].requires_grad_()
    rest = {"keep": torch.tensor(batch.keep), "lengths": torch.tensor(batch.lengths)}
    plain = {name: t.detach().double().numpy() for name, t in tensors.items()}
    ours = TokenBatch(**plain, keep=batch.keep, lengths=batch.lengths, rows=batch.rows)
    close(scan([TokenBatch(**tensors, **rest, rows=batch.rows)]).to_dict(), scan([ours]).to_dict())


@pytest.mark.parametrize("by", [(), ("step",), ("position",), ("lag",)])
def test_which_tables_are_asked_for_changes_no_other_number(by):
    whole = scan([make_batch(0)]).to_dict()
    found = scan([make_batch(0)], Options(by=by)).to_dict()
    for name, ratio in found["ratios"].items():
        for table in ("step", "lag", "position"):
            whole_table = whole["ratios"][name].pop(f"by_{table}")
            assert ratio.pop(f"by_{table}") == (whole_table if table in by else None)
    missing = whole.pop("not_computable")
    assert all(entry in missing for entry in found.pop("not_computable"))
    assert found == whole
