"""The numbers of real runs and of the logs with known faults."""

import json
from pathlib import Path

import pytest

from m2po_lab.analysis import Analysis, scan
from m2po_lab.analysis.finish import statistics
from m2po_lab.logs import open_log

DATA = Path(__file__).parent.parent / "data"
INDEX = json.loads((DATA / "pathologies" / "INDEX.json").read_text())
NAMES = {
    "n": "n",
    "mean": "mean",
    "M2": "m2",
    "k1": "k1",
    "k3": "k3",
    "chi2": "chi2",
    "ess": "ess_fraction",
    "absmean": "abs_mean",
}


def read(path: Path) -> Analysis:
    return scan(open_log(path))


@pytest.mark.parametrize("name", [name for name, entry in INDEX.items() if entry["correct"]])
def test_logs_with_known_faults_have_the_right_numbers(name: str):
    analysis, entry = read(DATA / "pathologies" / f"{name}.jsonl"), INDEX[name]
    stats = analysis.statistics("proximal/behavior")
    for theirs, ours in NAMES.items():
        assert stats[ours] == pytest.approx(entry["correct"][theirs], rel=1e-3, abs=1e-12), ours
    largest = max(-stats["log_ratio_min"], stats["log_ratio_max"])
    assert largest == pytest.approx(entry["correct"]["absmax"], rel=1e-9)
    cells = analysis.ratios["proximal/behavior"].cells
    for grouping in ("lag", "step"):
        table = dict(zip(cells[grouping].keys, statistics(cells[grouping]), strict=True))
        for key, expected in entry.get(f"by_{grouping}", {}).items():
            assert table[int(key)]["m2"] == pytest.approx(expected["M2"], rel=1e-3)
    if "by_step" in entry:
        found = {e["step"]: e["mean"] for e in analysis.to_dict()["entropy"]["by_step"]}
        for step, expected in entry["by_step"].items():
            assert found[int(step)] == pytest.approx(expected["H"], rel=1e-3)


@pytest.mark.parametrize(
    ("name", "n", "m2", "k1", "k3", "chi2", "ess", "largest"),
    [
        ("verl_grpo_fp16", 3541, 0.3432, 0.0413, 0.0367, 0.0027, 0.988, 13.36),
        ("trl_grpo_bf16", 502, 1.0265, 0.152, 0.126, -0.0002, 0.949, 10.68),
    ],
)
def test_real_runs_have_the_published_numbers(
    name: str, n: int, m2: float, k1: float, k3: float, chi2: float, ess: float, largest: float
):
    stats = read(DATA / "real" / f"{name}.jsonl").statistics("current/behavior")
    assert stats["n"] == n
    assert stats["m2"] == pytest.approx(m2, abs=5e-5)
    assert stats["k1"] == pytest.approx(k1, abs=5e-4)
    assert stats["k3"] == pytest.approx(k3, abs=5e-4)
    assert stats["chi2"] == pytest.approx(chi2, abs=5e-5)
    assert stats["ess_fraction"] == pytest.approx(ess, abs=5e-4)
    assert -stats["log_ratio_min"] == pytest.approx(largest, abs=5e-3)


def test_the_real_verl_run_drifts_with_lag_from_an_exact_floor():
    report = read(DATA / "real" / "verl_grpo_fp16.jsonl").to_dict()
    lags = report["ratios"]["current/behavior"]["by_lag"]
    assert [cell["lag"] for cell in lags] == [0, 1, 2, 3]
    assert [cell["n"] for cell in lags] == [910, 930, 912, 789]
    assert [round(cell["m2"], 4) for cell in lags[1:]] == [0.1316, 0.4583, 0.8555]
    assert report["attribution"]["floor_lag0"] == pytest.approx(2.78e-6, rel=1e-2)
    assert report["ratios"]["current/behavior"]["all"]["top1pct_m2_share"] > 0.997


def test_one_log_split_over_files_has_one_set_of_numbers():
    whole = (read(DATA / "pathologies" / f"29_microbatch_{part}.jsonl") for part in "ab")
    first, second = (analysis.statistics("proximal/behavior") for analysis in whole)
    assert first["m2"] == pytest.approx(second["m2"], rel=1e-12)
