"""The Gymnasium interface, and that it is the same bandit."""

import subprocess
import sys

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from toy_envs.chain import Chain, ContextualBandit, answer_states  # noqa: E402
from toy_envs.gym_env import BanditEnv  # noqa: E402


@pytest.mark.parametrize("bandit", [Chain(), ContextualBandit()], ids=lambda b: b.name)
def test_gymnasium_finds_nothing_to_object_to(bandit):
    check_env(BanditEnv(bandit), skip_render_check=True)


@pytest.mark.parametrize("name", ["Chain", "OneStep"])
def test_environments_are_made_by_name(name):
    env = gymnasium.make(f"toy_envs.gym_env:m2po_lab/{name}-v0")
    env.reset(seed=0)
    while not env.step(env.action_space.sample())[2]:
        pass


def episode(env, arms, **reset):
    """States, rewards and the end of one answer."""
    state, info = env.reset(**reset)
    states, rewards, ends = [state], [], []
    for arm in arms:
        state, reward, done, _, info = env.step(np.int64(arm))
        states.append(state)
        rewards.append(reward)
        ends.append(done)
    return states, rewards, ends, info


def test_an_episode_walks_the_states_of_the_same_answer_and_pays_its_reward():
    chain, rng = Chain(), np.random.default_rng(0)
    prompts = chain.prompts(rng, 20)
    answers = chain.demonstrations(rng, prompts)
    expected = answer_states(chain, prompts, answers)
    for prompt, answer, states, reward in zip(
        prompts, answers, expected, chain.reward(prompts, answers), strict=True
    ):
        seen, rewards, ends, info = episode(BanditEnv(), answer, options={"prompt": prompt})
        assert seen[:-1] == list(states)
        assert rewards == [0.0] * 9 + [reward]
        assert ends == [False] * 9 + [True]
        assert info["tokens"] == tuple(answer)


def test_the_same_seed_draws_the_same_prompts():
    first, second = (
        [env.reset(seed=5)[1]["prompt"], env.reset()[1]["prompt"]]
        for env in (BanditEnv(), BanditEnv())
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first[0], first[1])


def test_wrong_use_is_one_line_with_the_way_out():
    env = BanditEnv()
    with pytest.raises(
        ValueError, match=r"^there is no answer to go on with; call reset\(\) first$"
    ):
        env.step(np.int64(0))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"^action 10 is not an arm; they are 0 to 9$"):
        env.step(np.int64(10))
    with pytest.raises(ValueError, match=r"shape \(2,\); a prompt of bandit has 6 token ids$"):
        env.reset(options={"prompt": [1, 2]})


def test_without_gymnasium_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "try:\n    import toy_envs.gym_env\n"
        "except ImportError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == (
        "toy_envs.gym_env needs gymnasium; install it with: pip install 'm2po-lab[toy]'\n"
    )
