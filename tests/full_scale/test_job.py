"""A whole verl job on the processor: data, rollout, reward, update, weight sync, evaluation."""

import json
import math

import jobs
import pyarrow.parquet as pq
import pytest

import m2po_lab
from full_scale.data import verify
from full_scale.evaluation import Prepared, attributed, counted, read, scored

STALENESS, STEPS, BUDGET, MINI_BATCHES = 2, 5, 0.0002, 2


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("job")


@pytest.fixture(scope="module")
def overrides(work):
    model, data = jobs.save_guesser(work / "model"), jobs.save_data(work)
    policy = "+actor_rollout_ref.actor.policy_loss"
    tested = "actor_rollout_ref.rollout.val_kwargs"
    more = {
        f"{policy}.budget": BUDGET,
        f"{policy}.log_dir": work / "log",
        "trainer.test_freq": STEPS,
        "trainer.validation_data_dir": work / "validation",
        f"{tested}.n": jobs.SAMPLES,
        f"{tested}.do_sample": "true",
    }
    return jobs.settings(model, data, work, STEPS, **jobs.stale(STALENESS), **more)


@pytest.fixture(scope="module")
def steps(work, overrides):
    return jobs.finish(jobs.start(work, overrides), work)


def test_the_job_trains_all_its_steps_and_ends_well(steps):
    assert [step["training/global_step"] for step in steps] == list(range(1, STEPS + 1))
    for step in steps:
        assert math.isfinite(step["actor/grad_norm"])
        assert 0 < step["critic/score/mean"] < 1


def test_staleness_rises_to_k_and_stays_there_for_every_row(steps):
    expected = [min(i, STALENESS) for i in range(STEPS)]
    for name in ("training/stale_k/low", "training/stale_k/high"):
        assert [step[name] for step in steps] == expected
    for name in ("actor/m2po/staleness", "actor/m2po/staleness_low", "actor/m2po/staleness_high"):
        assert [step[name] for step in steps] == expected


def test_stale_data_is_masked_and_m2_stays_within_the_budget(steps):
    before = [step["actor/m2po/m2_before"] for step in steps]
    assert max(before[STALENESS:]) > BUDGET
    masked = [step["actor/m2po/masked_fraction"] for step in steps]
    assert max(masked) > 0
    assert all(step["actor/m2po/m2_after"] <= BUDGET for step in steps)


def files(work, step):
    return sorted((work / "log").glob(f"step_{step:07d}_*.parquet"))


def test_the_token_log_gives_the_second_moments_that_the_worker_reported(work, steps):
    for number, step in enumerate(steps, start=1):
        reports = [m2po_lab.analyze(path, budget=BUDGET).to_dict() for path in files(work, number)]
        assert len(reports) == MINI_BATCHES
        for name in ("m2_before", "m2_after", "masked_fraction"):
            logged = [report["objectives"]["m2po"][name] for report in reports]
            worker = step[f"actor/m2po/{name}"]
            assert sum(logged) / MINI_BATCHES == pytest.approx(worker, rel=1e-9)


def test_the_token_log_of_the_whole_run_is_read_without_complaint(work, steps):
    analysis = m2po_lab.analyze(work / "log", budget=BUDGET)
    report = analysis.to_dict()
    rows = STEPS * jobs.PROMPTS * jobs.SAMPLES
    assert report["rows"]["read"] == report["rows"]["kept"] == rows
    assert not [finding for finding in analysis.findings if finding.severity == "error"]
    lags = report["ratios"]["current/behavior"]["by_lag"]
    assert [each["lag"] for each in lags] == list(range(STALENESS + 1))
    assert report["groups"] is not None


def test_training_never_saw_what_is_tested_and_the_data_are_as_prepared(work, steps):
    trained, tested = (
        {chat[0]["content"] for chat in pq.read_table(work / "data" / name)["prompt"].to_pylist()}
        for name in ("train.parquet", "test.parquet")
    )
    assert len(trained) + len(tested) == len(jobs.SUMS)
    assert trained.isdisjoint(tested)
    assert verify(work / "data") == []


def test_the_evaluation_of_the_dump_is_the_accuracy_that_verl_reports(work, steps):
    found = json.loads(
        jobs.command("eval", work / "validation", "--data", work / "data", "--json", "-")
    )
    assert found["step"] == STEPS
    for name, source in (("aime24", "HuggingFaceH4/aime_2024"), ("amc23", "math-ai/amc23")):
        entry = found["sets"][name]
        assert entry["problems"] == len(jobs.TESTED[name])
        verl = steps[-1][f"val-core/{source}/acc/mean@{jobs.SAMPLES}"]
        assert entry["avg"]["percent"] == pytest.approx(100 * verl)
    # Four copies of an AIME problem with four samples each are sixteen samples of it.
    assert found["sets"]["aime24"]["avg"]["k"] == 4 * jobs.SAMPLES
    assert found["sets"]["amc23"]["avg"]["k"] == jobs.SAMPLES


def test_some_answers_are_right_and_the_reward_judges_them_the_same_afterwards(work, steps):
    def counts(**options):
        samples = attributed(read([str(work / "validation")], **options), Prepared(work / "data"))
        return counted(scored(list(samples)))

    dumped = counts()
    pairs = [pair for problems in dumped.values() for pair in problems.values()]
    assert 0 < sum(right for right, _ in pairs) < sum(total for _, total in pairs)
    assert counts(rescore=True) == dumped
