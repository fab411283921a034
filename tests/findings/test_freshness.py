"""Stale, or the updates of one rollout batch: what the log shows decides."""

from pathlib import Path

import numpy as np
import pytest

from m2po_lab.analysis.freshness import freshness
from m2po_lab.analysis.scan import scan
from m2po_lab.findings import evaluate
from m2po_lab.integrity.additive import Span
from m2po_lab.integrity.reuse import MOST_ROWS, Reuse
from m2po_lab.logs import open_log
from tests.findings import sick
from tests.findings.synthetic import Columns, analyzed, found, make

REAL = Path(__file__).parent.parent / "data" / "real"


def run(versions: dict[int, int], rows: int = 12, updates_per_step: int = 1) -> Columns:
    """Each trainer version takes `rows` new rows of the sampler version given for it."""
    trained = np.repeat(sorted(versions), rows)
    version = np.array([versions[t] for t in trained.tolist()])
    lag = trained - version
    log = make(7, rows=trained.size, group=4, steps=1, lags=(0,), proximal=False, length=30)
    noise = np.random.default_rng(7).normal(size=log.row.size)
    drift = 0.3 * np.sqrt(lag)[log.row] * noise
    return log.with_(
        current=np.minimum(log.behavior + drift, 0.0),
        version=version[log.row],
        train_version=trained,
        step=trained // updates_per_step,
    )


def ids(log: Columns) -> set[str]:
    return {"staleness-drift", "in-step-drift"} & set(found(log))


def test_a_step_of_four_updates_is_a_batch_and_older_data_is_stale() -> None:
    start = run(dict.fromkeys(range(4), 0), updates_per_step=4)
    assert ids(start) == {"in-step-drift"}
    for steps in (2, 5):
        log = run(dict.fromkeys(range(4 * steps), 0), updates_per_step=4)
        finding = found(log)["staleness-drift"]
        assert ids(log) == {"staleness-drift"}
        assert finding.evidence["updates_per_batch"] == 4
        assert finding.evidence["updates_per_version"] == 4 * steps
        assert f"{4 * steps} updates used one sampler version" in finding.message


def test_one_version_alone_is_staleness_unless_the_log_shows_its_batch() -> None:
    log = run(dict.fromkeys(range(6), 0))
    assert ids(log) == {"staleness-drift"}
    assert "nothing in the log shows" in found(log)["staleness-drift"].message


def test_rows_that_come_back_link_the_updates_of_a_batch() -> None:
    log = run(dict.fromkeys(range(4), 0), rows=16)
    assert log.train_version is not None
    assert ids(log) == {"staleness-drift"}
    copies = _trained_again(log, {0: 2, 1: 3})
    assert ids(copies) == {"in-step-drift"}
    apart = _trained_again(log, {0: 1, 2: 3})
    assert ids(apart) == {"staleness-drift"}


def _trained_again(log: Columns, pairs: dict[int, int]) -> Columns:
    """The rows of one trainer version are those of another, with the current log-probs of both."""
    assert log.train_version is not None
    lengths = np.full(log.lengths.size, 20)
    starts = np.cumsum(log.lengths) - log.lengths
    take = np.concatenate([np.arange(s, s + 20) for s in starts.tolist()])
    d = (log.current - log.behavior)[take].reshape(-1, 20)
    behavior = log.behavior[take].reshape(-1, 20)
    ids = [f"row{i}" for i in range(lengths.size)]
    for first, second in pairs.items():
        a, b = (np.flatnonzero(log.train_version == t) for t in (first, second))
        behavior[b] = behavior[a]
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            ids[y] = ids[x]
    return log.with_(
        lengths=lengths,
        behavior=behavior.reshape(-1),
        current=np.minimum(behavior + d, 0.0).reshape(-1),
        keep=log.keep[take],
        advantage=None,
        entropy=None,
        version=None if log.version is None else log.version[take],
        row_id=ids,
    )


def test_a_sampler_that_follows_is_fresh_and_one_left_behind_is_stale() -> None:
    follows = {t: t - t % 4 for t in range(16)}
    assert ids(run(follows)) == {"in-step-drift"}
    stuck = {t: (t - t % 4 if t < 12 else 8) for t in range(32)}
    assert ids(run(stuck)) == {"staleness-drift"}
    late = {t: max(t - t % 4 - 4, 0) for t in range(16)}
    assert ids(run(late)) == {"staleness-drift"}


def test_no_lag_zero_is_not_fresh() -> None:
    log = run({t: t - 2 - t % 2 for t in range(4, 20)})
    known = freshness(analyzed(log).integrity, "current/behavior")
    assert not known.is_fresh
    assert ids(log) <= {"staleness-drift"}


def test_advice_never_calls_rollouts_fresh_that_are_not() -> None:
    for log in (run(dict.fromkeys(range(20), 0)), sick.in_step(0), sick.stale(0)):
        for finding in found(log).values():
            assert "not stale" not in finding.advice


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_first_steps_of_a_stale_toy_run_are_called_stale(tmp_path: Path, steps: int) -> None:
    from toy_envs.recipes import Run
    from toy_envs.train import train

    train(Run(recipe="bandit", objective="is", staleness=256, seed=209, steps=steps), tmp_path)
    analysis = scan(open_log(tmp_path / "log"))
    drift = {f.id for f in evaluate(analysis)} & {"staleness-drift", "in-step-drift"}
    assert drift == ({"in-step-drift"} if steps == 1 else {"staleness-drift"})
    parts = analysis.to_dict()["attribution"]
    assert (parts["staleness"] > 0.04) == (steps > 1)


@pytest.mark.parametrize("name", ["trl_grpo_bf16", "verl_grpo_fp16"])
@pytest.mark.parametrize("share", [0.5, 0.25])
def test_parts_of_a_real_run_are_as_fresh_as_the_whole(
    tmp_path: Path, name: str, share: float
) -> None:
    lines = (REAL / f"{name}.jsonl").read_text().splitlines()
    rng = np.random.default_rng(5)
    for _ in range(3):
        chosen = rng.permutation(len(lines))[: int(share * len(lines))]
        path = tmp_path / "part.jsonl"
        path.write_text("".join(lines[i] + "\n" for i in chosen.tolist()))
        assert freshness(scan(open_log(path)).integrity, "current/behavior").is_fresh


@pytest.mark.parametrize("name", ["trl_grpo_bf16", "verl_grpo_fp16"])
def test_the_first_batch_of_a_real_run_is_fresh_by_its_rows(tmp_path: Path, name: str) -> None:
    lines = (REAL / f"{name}.jsonl").read_text().splitlines()
    path = tmp_path / "first.jsonl"
    path.write_text("".join(line + "\n" for line in lines if '"versions": [0,' in line))
    known = freshness(scan(open_log(path)).integrity, "current/behavior")
    assert known.is_fresh
    assert known.updates == 4


def test_what_is_known_of_reuse_does_not_depend_on_the_order() -> None:
    rng = np.random.default_rng(3)
    parts = []
    for _ in range(40):
        keys, at = rng.integers(0, 200, 10).tolist(), rng.integers(0, 8, 10).tolist()
        table = {k: Span(float(t), float(t)) for k, t in zip(keys, at, strict=True)}
        parts.append(Reuse(int(rng.integers(0, 3)), table))
    sums = []
    for _ in range(3):
        order = rng.permutation(len(parts)).tolist()
        total = parts[order[0]]
        for i in order[1:]:
            total += parts[i]
        sums.append(total)
    assert sums[0] == sums[1] == sums[2]
    assert len(sums[0].visits) == MOST_ROWS


def test_drift_without_lag_zero_is_neither_staleness_nor_mismatch() -> None:
    said = found(run({t: t - 8 for t in range(8, 24)}))["staleness-not-separable"]
    assert said.severity == "info"
    assert said.evidence["lowest_lag"] == said.evidence["highest_lag"] == 8
    assert "the least is 8" in said.message
    quiet = make(3, lags=(2,), walk=0.03)
    assert "staleness-not-separable" not in found(quiet)
    assert "staleness-not-separable" not in found(run({t: t - t % 4 for t in range(16)}))
