"""Tasks: prompts, demonstrations, rewards."""

from dataclasses import replace

import numpy as np
import pytest

from toy_envs.fraction_sums import FractionSums, same_number
from toy_envs.tasks import Forks, RunningSum

TASKS = [RunningSum(), Forks(), FractionSums()]


def ids(task, text):
    """Read a text as tokens, the longest first."""
    found, rest = [], text
    while rest:
        token = max((t for t in task.vocabulary if rest.startswith(t)), key=len)
        found.append(task.vocabulary.index(token))
        rest = rest[len(token) :]
    return found


def answer(task, text):
    """Read one answer, padded with the end token."""
    tokens = ids(task, text)
    return np.array([tokens + [task.end] * (task.answer_length - len(tokens))])


@pytest.mark.parametrize("task", TASKS, ids=lambda t: t.name)
def test_a_teacher_without_noise_is_always_right(task):
    rng = np.random.default_rng(0)
    prompts = task.prompts(rng, 200)
    answers = replace(task, noise=0.0).demonstrations(rng, prompts)
    assert (task.reward(prompts, answers) == 1).all()


@pytest.mark.parametrize("task", TASKS, ids=lambda t: t.name)
def test_a_noisy_teacher_is_sometimes_wrong(task):
    rng = np.random.default_rng(0)
    prompts = task.prompts(rng, 400)
    share = task.reward(prompts, task.demonstrations(rng, prompts)).mean()
    assert 0.02 < share < 0.8


@pytest.mark.parametrize("task", TASKS, ids=lambda t: t.name)
def test_shapes_and_ids_are_as_promised(task):
    rng = np.random.default_rng(0)
    prompts = task.prompts(rng, 50)
    answers = task.demonstrations(rng, prompts)
    assert prompts.shape == (50, task.prompt_length)
    assert answers.shape == task.keep(answers).shape == (50, task.answer_length)
    assert max(prompts.max(), answers.max()) < len(task.vocabulary)
    assert task.keep(answers)[:, 0].all()


@pytest.mark.parametrize("task", TASKS, ids=lambda t: t.name)
def test_the_same_seed_gives_the_same_bytes(task):
    def both():
        rng = np.random.default_rng(7)
        prompts = task.prompts(rng, 20)
        return prompts.tobytes() + task.demonstrations(rng, prompts).tobytes()

    assert both() == both()


@pytest.mark.parametrize(("text", "reward"), [("4471", 1), ("4472", 0), ("4571", 0), ("4441", 0)])
def test_a_running_sum_counts_only_if_the_whole_chain_is_right(text, reward):
    task = RunningSum(digits=2)
    assert task.reward(np.array([ids(task, "47=")]), answer(task, text)) == [reward]


@pytest.mark.parametrize(
    ("text", "reward"), [("a4ap1p", 1), ("c4ca1a", 1), ("a4bp1p", 0), ("a4ap2p", 0), ("141p1p", 0)]
)
def test_any_letter_will_do_at_a_fork_if_it_is_copied(text, reward):
    task = Forks(digits=2)
    assert task.reward(np.array([ids(task, "47=")]), answer(task, text)) == [reward]


def test_forks_hold_tokens_of_very_different_entropy():
    rng = np.random.default_rng(0)
    task = Forks()
    answers = task.demonstrations(rng, task.prompts(rng, 4000))
    letters = np.bincount(answers[:, 0], minlength=len(task.vocabulary))[11:27]
    assert letters.min() / letters.sum() > 1 / 16 - 0.02
    assert (answers[:, 0::3] == answers[:, 2::3]).all()


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        (r"5+6=\boxed{11/15}$", 1),
        (r"\boxed{22/30}$", 1),
        (r"\boxed{11/15}", 1),
        (r"9+9=\boxed{33/45}$", 1),
        (r"5+6=\boxed{11/30}$", 0),
        (r"5+6=11/15$", 0),
        (r"\boxed{1/0}$", 0),
        (r"\boxed{/}$", 0),
        (r"\boxed{11/15$", 0),
        (r"$\boxed{11/15}", 0),
    ],
)
def test_a_fraction_counts_by_value_and_only_in_its_box(text, reward):
    task = FractionSums()
    assert task.reward(np.array([ids(task, "1/3+2/5=")]), answer(task, text)) == [reward]


def test_the_last_box_is_the_answer():
    assert same_number("1/2", r"\boxed{3}\boxed{2/4}")
    assert not same_number("1/2", r"\boxed{2/4}\boxed{3}")


def test_an_answer_ends_with_its_first_end_token():
    task = FractionSums()
    kept = task.keep(answer(task, "12$34$"))
    assert kept[0].tolist() == [True] * 3 + [False] * (task.answer_length - 3)
