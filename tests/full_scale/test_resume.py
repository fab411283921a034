"""A job that is killed in the middle goes on from its checkpoint, with its stale queue."""

import time

import jobs
import pytest

import m2po_lab

STALENESS, STEPS, MINI_BATCHES = 2, 7, 2
KILL_AFTER = 4


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("resume")


@pytest.fixture(scope="module")
def runs(work):
    """Metrics of the run that was killed and of the one that went on."""
    model, data = jobs.save_guesser(work / "model"), jobs.save_data(work)
    more = {
        "+actor_rollout_ref.actor.policy_loss.log_dir": work / "log",
        "trainer.save_freq": 3,
    }
    overrides = jobs.settings(model, data, work, STEPS, **jobs.stale(STALENESS), **more)
    first = jobs.start(work, overrides, "first.jsonl")
    try:
        ends = time.monotonic() + 300
        while len(jobs.read(work / "first.jsonl")) < KILL_AFTER and time.monotonic() < ends:
            assert first.poll() is None, (work / "log.txt").read_text()[-5000:]
            time.sleep(0.1)
    finally:
        jobs.kill(first)
    killed = jobs.read(work / "first.jsonl")
    assert KILL_AFTER <= len(killed) < STEPS
    second = jobs.start(work, overrides, "second.jsonl")
    return killed, jobs.finish(second, work, "second.jsonl")


def test_it_goes_on_behind_the_checkpoint_and_not_from_the_start(runs):
    killed, resumed = runs
    saved = len(killed) // 3 * 3
    assert [step["training/global_step"] for step in resumed] == list(range(saved + 1, STEPS + 1))


def test_the_stale_queue_is_restored_so_that_staleness_stays_k(runs):
    _, resumed = runs
    for step in resumed:
        assert step["training/stale_k/low"] == step["training/stale_k/high"] == STALENESS
        assert step["actor/m2po/staleness_high"] == STALENESS


def test_the_token_log_holds_every_step_once_and_nothing_half_written(work, runs):
    files = sorted(path.name for path in (work / "log").glob("step_*.parquet"))
    expected = [
        f"step_{step:07d}_mini_{mini:03d}_rank_00000.parquet"
        for step in range(1, STEPS + 1)
        for mini in range(MINI_BATCHES)
    ]
    assert files == expected
    analysis = m2po_lab.analyze(work / "log")
    report = analysis.to_dict()
    assert report["rows"]["kept"] == STEPS * jobs.PROMPTS * jobs.SAMPLES
    assert not [finding for finding in analysis.findings if finding.severity == "error"]
    steps = report["ratios"]["current/behavior"]["by_step"]
    assert [each["step"] for each in steps] == list(range(1, STEPS + 1))
