"""The loop: what it leaves behind, killed or not, and what it refuses."""

import shutil
from types import MappingProxyType

import numpy as np
import pytest

import toy_envs.recipes
import toy_envs.train
from m2po_lab.logs.open import open_log
from toy_envs.journal import RunMismatchError, read_metrics
from toy_envs.recipes import RECIPES, Arm, Recipe, Run, arm
from toy_envs.train import train


class KilledError(Exception):
    """Stands for a kill."""


def files(out):
    """Every byte of a run."""
    return {p.relative_to(out): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def killed_after(step):
    def progress(done, metrics):
        if done == step:
            raise KilledError

    return progress


def bandit(**changes):
    settings = {"recipe": "bandit", "objective": "m2po", "staleness": 8, "steps": 9, "seed": 3}
    return Run(**{**settings, **changes})


@pytest.fixture
def tiny_lm(monkeypatch):
    """A recipe whose warm start takes a moment."""
    pytest.importorskip("torch")
    from toy_envs.lm_policy import LMPolicy, WarmStart, warm_model
    from toy_envs.small_lm import SmallLMConfig
    from toy_envs.tasks import RunningSum

    def make(recipe, seed, cache, engine):
        task = RunningSum(digits=2)
        shape = SmallLMConfig(width=16, heads=2)
        model = warm_model(task, shape, WarmStart(steps=40, batch=32, attempts=1), seed, cache)
        return LMPolicy(task, model, prompts=recipe.prompts, samples=recipe.samples, engine=engine)

    tiny = Recipe(name="tiny", summary="", make=make, prompts=8, samples=4, learning_rate=1e-3)
    monkeypatch.setattr(toy_envs.train, "RECIPES", MappingProxyType({**RECIPES, "tiny": tiny}))
    return "tiny"


def assert_resumes_to_the_same_bytes(run, tmp_path, killed_at):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(run, whole, checkpoint_every=2)
    for step in killed_at:
        with pytest.raises(KilledError):
            train(run, broken, checkpoint_every=2, progress=killed_after(step))
    train(run, broken, checkpoint_every=2)
    assert files(broken) == files(whole)


@pytest.mark.parametrize("objective", ["m2po", "decoupled_ppo"])
def test_a_killed_bandit_goes_on_to_the_same_bytes(tmp_path, objective):
    assert_resumes_to_the_same_bytes(bandit(objective=objective), tmp_path, [0, 4, 6])


def test_a_killed_run_with_random_lags_and_a_noisy_sampler_goes_on_to_the_same_bytes(tmp_path):
    run = bandit(queue="mixed=16", mismatch="noise=0.1,top-p=0.9")
    assert_resumes_to_the_same_bytes(run, tmp_path, [1, 6])


def test_a_killed_transformer_goes_on_to_the_same_bytes(tmp_path, tiny_lm):
    run = bandit(recipe=tiny_lm, steps=6)
    assert_resumes_to_the_same_bytes(run, tmp_path, [1, 4])


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        train(bandit(seed=seed, steps=2), tmp_path / name)
    a, b, c = (files(tmp_path / name) for name in "abc")
    assert a == b
    assert a[next(p for p in a if p.suffix == ".parquet")] not in c.values()


def test_how_often_checkpoints_are_made_changes_no_byte(tmp_path):
    train(bandit(steps=3), tmp_path / "often", checkpoint_every=1)
    train(bandit(steps=3), tmp_path / "once", checkpoint_every=100)
    assert files(tmp_path / "often") == files(tmp_path / "once")


def test_a_finished_run_is_read_not_repeated(tmp_path):
    first = train(bandit(steps=2), tmp_path)
    again = train(bandit(steps=2), tmp_path, progress=killed_after(0))
    assert [m["reward"] for m in again] == [m["reward"] for m in first]


def test_lags_in_the_log_are_the_staleness_and_the_updates_of_the_step(tmp_path):
    run = bandit(staleness=8, steps=6)
    train(run, tmp_path)
    for batch in open_log(str(tmp_path / "log")):
        lag = (
            batch.rows.train_version
            - np.asarray(batch.version)[np.concatenate([[0], np.cumsum(batch.lengths)[:-1]])]
        )
        # The start policy's rollouts are used until the queue has turned over.
        expected = np.minimum(batch.rows.train_version, 8 + batch.rows.train_version % 4)
        assert lag.tolist() == expected.tolist()


def test_a_mixed_queue_trains_on_many_lags_up_to_its_limit(tmp_path):
    train(bandit(queue="mixed=16", staleness=8, steps=16), tmp_path)
    (batch,) = open_log(str(tmp_path / "log"))
    lag = np.repeat(batch.rows.train_version, batch.lengths) - np.asarray(batch.version)
    late = np.repeat(batch.rows.step == 15, batch.lengths)
    assert len(set(lag[late] // 4)) > 2
    assert lag.max() <= 19


@pytest.mark.parametrize("mismatch", ["noise=0.2", "temperature=1.2", "top-p=0.8"])
def test_a_mismatched_sampler_is_off_policy_at_lag_0(tmp_path, mismatch):
    run = {"staleness": 0, "steps": 1}
    plain = train(bandit(**run), tmp_path / "plain")
    other = train(bandit(**run, mismatch=mismatch), tmp_path / "other")
    assert other[0]["m2_all"] > plain[0]["m2_all"] + 1e-3


def test_metrics_are_statistics_of_the_log(tmp_path):
    metrics = train(bandit(steps=5), tmp_path)
    seen, rewards = [], []
    for batch in open_log(str(tmp_path / "log")):
        last = batch.rows.step == 4
        seen.append(np.asarray(batch.log_ratio("current/behavior"))[np.repeat(last, batch.lengths)])
        rewards.append(batch.rows.reward[last])
    assert metrics[4]["m2_all"] == pytest.approx(np.mean(np.concatenate(seen) ** 2), rel=1e-4)
    assert metrics[4]["reward_trained"] == pytest.approx(np.concatenate(rewards).mean())


def test_the_reward_of_a_step_is_that_of_the_policy_before_it(tmp_path):
    on_policy = train(bandit(staleness=0, steps=4), tmp_path)
    assert [m["reward"] for m in on_policy] == [m["reward_trained"] for m in on_policy]


def test_metrics_are_read_back_as_they_were_written(tmp_path):
    metrics = train(bandit(steps=3), tmp_path)
    assert [m["reward"] for m in read_metrics(tmp_path)] == [m["reward"] for m in metrics]


def test_decay_ends_near_a_learning_rate_of_zero(tmp_path):
    steady = train(bandit(steps=8, staleness=0), tmp_path / "steady")
    decayed = train(bandit(steps=8, staleness=0, decay=True), tmp_path / "decayed")
    assert decayed[-1]["m2_all"] < steady[-1]["m2_all"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"staleness": 6}, r"staleness 6 is not a multiple of the 4 updates a step.*; take 4 or 8"),
        ({"staleness": -4}, "staleness"),
        ({"objective": "m3po"}, "did you mean m2po"),
        ({"params": {"budget": -1.0}}, "budget"),
        ({"queue": "lifo"}, "queue 'lifo' is not fifo, mixed or mixed=LIMIT"),
        ({"queue": "mixed=4"}, "limit 4 is below the mean staleness 8; take at least 8"),
        ({"mismatch": "fp8"}, "unknown mismatch 'fp8'"),
        ({"recipe": "nothing"}, "unknown recipe 'nothing'"),
        ({"steps": 0}, "steps"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_written(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        train(bandit(**changes), tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_directory_with_another_run_is_refused(tmp_path):
    train(bandit(steps=1), tmp_path)
    with pytest.raises(RunMismatchError, match="holds a run with other settings"):
        train(bandit(steps=1, seed=9), tmp_path)


def test_a_warm_start_is_made_once(tmp_path, tiny_lm):
    cache = tmp_path / "warm"
    train(bandit(recipe=tiny_lm, steps=1), tmp_path / "a", cache=cache)
    (kept,) = cache.iterdir()
    before = kept.stat().st_mtime_ns
    train(bandit(recipe=tiny_lm, steps=1), tmp_path / "b", cache=cache)
    assert kept.stat().st_mtime_ns == before
    shutil.rmtree(tmp_path / "a" / "log")
    train(bandit(recipe=tiny_lm, steps=1), tmp_path / "c")
    assert files(tmp_path / "b") == files(tmp_path / "c")


def test_an_arm_is_named_by_objective_and_staleness():
    assert arm("m2po_s256") == Arm(objective="m2po", staleness=256)
    assert arm("dual_clip_s8").name == "dual_clip_s8"
    assert Arm(objective="m2po", staleness=0, params={"budget": 0.01}).name == "m2po_s0_budget0.01"


@pytest.mark.parametrize("text", ["ppo", "ppo_s", "_s4", "ppo_s-4", "ppo_s4.0"])
def test_a_text_that_is_no_arm_is_refused(text):
    with pytest.raises(ValueError, match="is not <objective>_s<staleness"):
        arm(text)


def test_every_arm_of_every_sweep_is_a_valid_run():
    for arms in (toy_envs.recipes.ARMS, *toy_envs.recipes.SWEEPS.values()):
        names = [one.name for one in arms]
        assert len(set(names)) == len(names)
        for one in arms:
            toy_envs.train.settings_of(one.run("running-sum", 0))
