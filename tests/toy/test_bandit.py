"""Softmax policies on bandits: gradient, determinism, seeds side by side, a whole run."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest

import m2po_lab
from m2po_lab.core.objectives import OBJECTIVES, objective
from toy_envs import closed_form
from toy_envs.bandit import BanditPolicy, WarmStart, token_pull
from toy_envs.bandit_sweep import Together, sweep
from toy_envs.chain import Chain, ContextualBandit, answer_states
from toy_envs.policy import Rollout, group_advantage
from toy_envs.recipes import RECIPES, Run
from toy_envs.softmax import Adam, Features
from toy_envs.train import generator, train

SHORT = WarmStart(steps=60)


def every_answer(policy, table):
    """All answers of a chain of one digit, weighted so that a mean over tokens is E[R ...]."""
    answers = np.array(list(product(range(10), repeat=2)))
    digits = np.repeat(np.arange(10), len(answers))
    prompts = np.stack([digits, np.full_like(digits, 10)], axis=1)
    answers = np.tile(answers, (10, 1))
    states = answer_states(policy.bandit, prompts, answers)
    logp = table[states, answers]
    reward = policy.bandit.reward(prompts, answers)
    probability = np.exp(logp.sum(axis=1)) / 10
    return Rollout(
        prompts=prompts,
        tokens=answers,
        keep=np.ones(answers.shape, np.bool_),
        behavior_logp=logp,
        entropy=np.zeros(answers.shape, np.float32),
        reward=reward,
        advantage=probability * reward * answers.size,
        version=np.zeros(answers.shape, np.int32),
    )


@pytest.mark.parametrize("name", ["reinforce", "is", "ppo", "m2po", "gspo_token"])
def test_the_on_policy_gradient_of_the_trainer_is_the_exact_policy_gradient(name):
    policy = BanditPolicy(Chain(digits=1), 0, warm=SHORT)
    part = every_answer(policy, policy.table())
    goal = objective(name, aggregation="token_mean")
    gradient, update = policy.gradient(part, goal)
    in_logits = closed_form.policy_gradient(policy.bandit.dynamics(), policy.table())
    np.testing.assert_allclose(gradient, policy.features.T @ in_logits, rtol=1e-9, atol=1e-15)
    assert update.gradient_norm == pytest.approx(np.linalg.norm(gradient))


def test_importance_weights_make_the_stale_gradient_of_one_token_exact():
    bandit = ContextualBandit(contexts=6, arms=4)
    policy = BanditPolicy(bandit, 0, warm=SHORT)
    context, arm = (grid.ravel() for grid in np.indices((6, 4)))
    behavior = np.random.default_rng(0).dirichlet(np.ones(4), 6)
    prompts, answers = context[:, None], arm[:, None]
    reward = bandit.reward(prompts, answers)
    probability = behavior[context, arm] / 6
    part = Rollout(
        prompts=prompts,
        tokens=answers,
        keep=np.ones(answers.shape, np.bool_),
        behavior_logp=np.log(behavior[context, arm])[:, None],
        entropy=np.zeros(answers.shape, np.float32),
        reward=reward,
        advantage=probability * reward * len(reward),
        version=np.zeros(answers.shape, np.int32),
    )
    gradient, _ = policy.gradient(part, objective("is"))
    exact = closed_form.policy_gradient(bandit.dynamics(), policy.table())
    np.testing.assert_allclose(gradient, policy.features.T @ exact, rtol=1e-9, atol=1e-15)
    clipped, update = policy.gradient(part, objective("ppo"))
    assert not update.keep.all()
    assert not np.allclose(clipped, gradient)


def stale_part(policy, moves=3):
    """A mini-batch on which the policy has drifted far enough for every trust region to bind."""
    rollout = policy.rollout(np.random.default_rng(1))
    rollout = rollout.replace(advantage=group_advantage(rollout.reward, policy.samples))
    for _ in range(moves):
        policy.update(rollout, objective("is"), 0.1)
    return rollout.replace(proximal_logp=policy.logp(rollout) - 0.05)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_the_update_climbs_down_the_loss_of_every_objective(name):
    policy = BanditPolicy(Chain(), 0, warm=SHORT)
    part = stale_part(policy)
    goal = objective(name)
    batch = part.batch(policy.logp(part))
    pull, keep = token_pull(part, policy.logp(part), goal)
    np.testing.assert_array_equal(keep, goal.keep(batch))
    np.testing.assert_array_equal(pull, goal.gradient(batch) / goal.divisor(batch))


@pytest.mark.parametrize("name", ["ppo", "m2po", "gspo", "m2po_areal", "dr_grpo", "kimi"])
def test_mini_batches_of_several_seeds_pull_as_each_alone(name):
    policies = [BanditPolicy(Chain(), seed, warm=SHORT) for seed in range(3)]
    parts = [stale_part(policy) for policy in policies]
    extra = {"aggregation": "constant", "max_length": 10.0} if name == "dr_grpo" else {}
    goal = objective(name, **extra)
    currents = [p.logp(part) for p, part in zip(policies, parts, strict=True)]
    whole = Rollout(
        **{k: np.concatenate([p.arrays()[k] for p in parts]) for k in parts[0].arrays()}
    )
    pull, keep = token_pull(whole, np.concatenate(currents), goal, seeds=3)
    alone = [token_pull(p, c, goal) for p, c in zip(parts, currents, strict=True)]
    np.testing.assert_array_equal(pull, np.concatenate([a[0] for a in alone]))
    np.testing.assert_array_equal(keep, np.concatenate([a[1] for a in alone]))


@pytest.mark.parametrize("name", ["ppo", "m2po"])
def test_seeds_side_by_side_are_the_seeds_one_at_a_time(name, tmp_path):
    seeds, run = (3, 7), {"steps": 6, "staleness": 8}
    policies = [RECIPES["bandit"].make(RECIPES["bandit"], seed, None, None) for seed in seeds]
    values = []
    for policy in policies:
        values.append(closed_form.value(policy.bandit.dynamics(), policy.table()))
    curves = sweep(policies, seeds, objective(name), learning_rate=0.06, **run)
    np.testing.assert_allclose(curves.value[:, 0], values, rtol=1e-12)
    for k, seed in enumerate(seeds):
        setting = Run(recipe="bandit", objective=name, seed=seed, **run)
        metrics = train(setting, tmp_path / f"{name}{seed}")
        one = [m["masked_fraction"] for m in metrics]
        np.testing.assert_allclose(curves.masked_fraction[k], one, rtol=1e-12)
        norms = [m["gradient_norm"] for m in metrics]
        np.testing.assert_array_equal(curves.gradient_norm[k], norms)


def test_rollouts_of_several_seeds_are_those_of_each():
    policies = [BanditPolicy(Chain(), seed, warm=SHORT) for seed in (0, 1)]
    group = Together(policies, (0, 1))
    whole = group.rollout(group.tables(), "rollout", 5, scaled=True)
    for k, policy in enumerate(policies):
        alone = policy.rollout(generator(k, "rollout", 5))
        part = whole.rows(256 * k, 256 * (k + 1))
        for name in ("prompts", "tokens", "behavior_logp", "entropy", "reward"):
            np.testing.assert_array_equal(getattr(part, name), getattr(alone, name))


def test_adam_is_the_adam_of_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    start, gradients = rng.normal(size=(5, 3)), rng.normal(size=(20, 5, 3))
    adam = Adam(start.copy())
    theirs = torch.nn.Parameter(torch.tensor(start))
    optimizer = torch.optim.Adam([theirs], lr=0.05, maximize=True)
    for gradient in gradients:
        adam.step(gradient, 0.05, clip=2.0)
        theirs.grad = torch.tensor(gradient)
        torch.nn.utils.clip_grad_norm_([theirs], 2.0)
        optimizer.step()
    np.testing.assert_allclose(adam.weights, theirs.detach().numpy(), rtol=1e-5)


def test_a_tabular_policy_shares_nothing_and_random_features_do():
    chain, rng = Chain(), np.random.default_rng(0)
    table = Features(random=0).of(chain.inputs, rng)
    shared = Features().of(chain.inputs, rng)
    np.testing.assert_array_equal(table @ table.T, np.eye(200))
    assert ((shared @ shared.T)[~np.eye(200, dtype=bool)] > 0).any()
    with pytest.raises(ValueError, match="table and random are both 0"):
        Features(table=0, random=0).of(chain.inputs, rng)


def test_the_warm_start_is_unsure_of_its_sums_and_sure_of_its_copies():
    policy = BanditPolicy(Chain(), 0)
    p = np.exp(policy.table())
    digit, total = np.indices((10, 10))
    assert p[digit * 10 + total, digit].min() > 0.95
    assert p[100 + digit * 10 + total, (digit + total) % 10].mean() == pytest.approx(
        0.685, abs=0.03
    )
    start = closed_form.value(policy.bandit.dynamics(), policy.table())
    assert start == pytest.approx(0.15, abs=0.02)


def test_a_policy_goes_on_from_its_state():
    policies = [BanditPolicy(Chain(), 0, warm=SHORT) for _ in range(2)]
    parts = [stale_part(policies[0], moves=2)] * 2
    policies[1].load(policies[0].state())
    for policy, part in zip(policies, parts, strict=True):
        policy.update(part, objective("ppo"), 0.06)
    np.testing.assert_array_equal(policies[0].table(), policies[1].table())


def test_the_same_seed_leaves_the_same_bytes_and_another_seed_does_not(tmp_path):
    def files(name, seed):
        train(Run(recipe="bandit", staleness=8, steps=4, seed=seed), tmp_path / name)
        return {p.name: p.read_bytes() for p in sorted((tmp_path / name / "log").iterdir())}

    first = files("a", 0)
    assert files("b", 0) == first
    assert all(files("c", 1)[name] != content for name, content in first.items())


def test_a_run_writes_a_log_that_analyze_reads(tmp_path):
    train(Run(recipe="bandit", objective="m2po", staleness=8, steps=12), tmp_path)
    report = m2po_lab.analyze(tmp_path / "log").to_dict()
    assert report["tokens"]["kept"] == 12 * 256 * 10
    assert report["primary"] == "current/behavior"
    assert not [f for f in report["findings"] if f["severity"] == "error"]
    lags = [row["lag"] for row in report["ratios"]["current/behavior"]["by_lag"]]
    assert lags == list(range(12))


def test_a_run_imports_no_torch(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from pathlib import Path\n"
        "from toy_envs.recipes import Run\nfrom toy_envs.train import train\n"
        f"train(Run(recipe='bandit', staleness=4, steps=2), Path({str(tmp_path)!r}))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_prosperity_before_collapse_on_eight_seeds():
    seeds = range(8)
    policies = [BanditPolicy(Chain(), seed) for seed in seeds]

    def curves(name, staleness):
        return sweep(policies, seeds, objective(name), staleness=staleness)

    fresh, clip, free, m2po = (
        curves(*arm) for arm in (("ppo", 0), ("ppo", 256), ("is", 256), ("m2po", 256))
    )

    def final(arm):
        return np.median(arm.value[:, -12:].mean(axis=1))

    def dips(arm):
        return int((arm.value[:, 80:].min(axis=1) < 0.6).sum())

    assert final(fresh) > 0.98
    assert 0.8 < final(clip) < 0.95
    assert final(m2po) > 0.9
    assert dips(free) >= 3 > dips(m2po)
    assert free.value.max(axis=1).min() > 0.75
    assert m2po.masked_fraction[:, 64:].mean() < clip.masked_fraction[:, 64:].mean() / 2
