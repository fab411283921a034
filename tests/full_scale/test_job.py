"""A whole verl job on the processor: rollout, reward, update, weight sync, under Stale-k."""

import math

import jobs
import pytest

STALENESS, STEPS, BUDGET = 2, 5, 0.002


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("job")


@pytest.fixture(scope="module")
def overrides(work):
    model, data = jobs.save_guesser(work / "model"), jobs.save_data(work)
    stale = {
        "trainer.v1.trainer_mode": "colocate_async",
        "trainer.v1.colocate_async.num_warmup_batches": STALENESS,
        "trainer.v1.sampler.max_off_policy_threshold": "null",
        "trainer.v1.sampler.custom_sampler.path": jobs.STALE,
        "trainer.v1.sampler.custom_sampler.name": "StaleK",
        "+actor_rollout_ref.actor.policy_loss.budget": BUDGET,
    }
    return jobs.settings(model, data, work, STEPS, **stale)


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
