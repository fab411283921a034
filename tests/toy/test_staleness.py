"""How old rollouts are: by construction, and counted from the versions in a written log."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2po_lab.logs import open_log
from toy_envs.policy import Rollout
from toy_envs.recipes import Run
from toy_envs.staleness import MixedQueue, StaleQueue, chosen_rows
from toy_envs.train import train

SAMPLES, GROUPS = 2, 3


def rollout(mark, version=0):
    """Three groups of two answers that know which rollout they are of."""
    rows = SAMPLES * GROUPS
    return Rollout(
        prompts=np.full((rows, 1), mark),
        tokens=np.repeat(np.arange(GROUPS), SAMPLES)[:, None],
        keep=np.ones((rows, 1), np.bool_),
        behavior_logp=np.full((rows, 1), -1.0, np.float32),
        entropy=np.ones((rows, 1), np.float32),
        reward=np.zeros(rows),
        advantage=np.zeros(rows),
        version=np.full((rows, 1), version, np.int32),
    )


def rng_of(step):
    return np.random.default_rng([9, step])


def popped(queue, steps, first_version=0):
    """Fill, then push and pop: marks are steps, those of the start policy are negative."""
    for i in range(queue.first):
        queue.push(rollout(i - queue.first))
    given = []
    for step in range(steps):
        queue.push(rollout(step, step))
        given.append(queue.pop(rng_of(step)))
    return given


def test_the_fifo_gives_rollouts_of_the_start_policy_for_the_first_k_updates_then_k_old_ones():
    marks = [int(r.prompts[0, 0]) for r in popped(StaleQueue(256, 4), 70)]
    assert marks == list(range(-64, 6))


def test_without_staleness_the_fresh_rollout_comes_back_at_once():
    queue = StaleQueue(0, 4)
    assert queue.first == 0
    assert [int(r.prompts[0, 0]) for r in popped(queue, 3)] == [0, 1, 2]


def lags(log):
    """Lag of every token, step by step, counted from the columns of the log."""
    by_step = {}
    for batch in open_log(log):
        train_version = np.repeat(batch.rows.train_version, batch.lengths)
        step = np.repeat(batch.rows.step, batch.lengths)
        lag = train_version - batch.version
        for one in np.unique(step):
            by_step.setdefault(int(one), set()).update(lag[step == one].tolist())
    return by_step


def test_the_staleness_counted_from_the_versions_in_the_log_is_k_to_k_plus_3(tmp_path):
    train(Run(recipe="bandit-one-step", objective="ppo", staleness=256, steps=70), tmp_path)
    by_step = lags(tmp_path / "log")
    assert len(by_step) == 70
    for step, seen in by_step.items():
        first = min(4 * step, 256)
        assert seen == {first, first + 1, first + 2, first + 3}


def test_on_policy_lags_are_those_of_the_mini_batches(tmp_path):
    train(Run(recipe="bandit-one-step", objective="ppo", staleness=0, steps=3), tmp_path)
    assert set(map(frozenset, lags(tmp_path / "log").values())) == {frozenset({0, 1, 2, 3})}


@pytest.mark.parametrize(
    ("staleness", "remedy"), [(255, "252 or 256"), (1, "0 or 4"), (-4, "0"), (-1, "0")]
)
def test_a_staleness_between_two_steps_is_one_line_with_the_nearest(staleness, remedy):
    for queue in (StaleQueue, lambda *a: MixedQueue(*a, SAMPLES)):
        with pytest.raises(ValueError, match="staleness") as caught:
            queue(staleness, 4)
        assert str(caught.value) == (
            f"staleness {staleness} is not a multiple of the 4 updates a step, from 0 on;"
            f" take {remedy}"
        )


def test_a_limit_below_the_mean_is_one_line():
    with pytest.raises(
        ValueError, match=r"^limit 4 is below the mean staleness 8; take at least 8$"
    ):
        MixedQueue(8, 4, SAMPLES, limit=4)
    with pytest.raises(ValueError, match=r"^limit 10 is not a multiple of the 4 updates a step"):
        MixedQueue(8, 4, SAMPLES, limit=10)


def test_an_empty_pool_says_so():
    with pytest.raises(ValueError, match="push a rollout before the first pop"):
        MixedQueue(0, 4, SAMPLES).pop(rng_of(0))


@settings(max_examples=40, deadline=None)
@given(depth=st.integers(0, 5), slack=st.one_of(st.none(), st.integers(0, 4)))
def test_every_group_is_trained_on_at_most_once_whole_and_none_beyond_the_limit(depth, slack):
    limit = None if slack is None else 4 * (depth + slack)
    queue, steps = MixedQueue(4 * depth, 4, SAMPLES, limit), 25
    seen = set()
    for step, given_rollout in enumerate(popped(queue, steps)):
        assert given_rollout.n_rows == SAMPLES * GROUPS
        for row in range(0, given_rollout.n_rows, SAMPLES):
            marks = given_rollout.prompts[row : row + SAMPLES, 0]
            groups = given_rollout.tokens[row : row + SAMPLES, 0]
            assert (marks == marks[0]).all()
            assert (groups == groups[0]).all()
            key = (int(marks[0]), int(groups[0]))
            assert key not in seen
            seen.add(key)
            assert key[0] <= step
            if limit is not None:
                assert 4 * (step - key[0]) <= limit
    waiting = queue.state()
    left = set(
        zip(waiting["prompts"][:, 0].tolist(), waiting["tokens"][:, 0].tolist(), strict=True)
    )
    assert left.isdisjoint(seen)
    assert len(left | seen) == GROUPS * (depth + steps)


@given(depth=st.integers(0, 6))
@settings(max_examples=7, deadline=None)
def test_with_the_mean_as_its_limit_the_pool_is_the_fifo(depth):
    pool = popped(MixedQueue(4 * depth, 4, SAMPLES, 4 * depth), 12)
    fifo = popped(StaleQueue(4 * depth, 4), 12)
    for a, b in zip(pool, fifo, strict=True):
        for name, array in a.arrays().items():
            np.testing.assert_array_equal(array, b.arrays()[name])


@pytest.mark.parametrize("limit", [None, 64])
def test_the_mean_lag_of_the_pool_is_its_staleness(limit):
    given = popped(MixedQueue(32, 4, SAMPLES, limit), 3000)
    lag = np.array([4 * (step - r.prompts[:, 0].mean()) for step, r in enumerate(given)][200:])
    ages = np.concatenate([4 * (s - r.prompts[::2, 0]) for s, r in enumerate(given)][200:])
    assert lag.mean() == pytest.approx(32, abs=1)
    assert ages.min() == 0
    assert ages.max() > 60 if limit is None else ages.max() == 64
    assert len(np.unique(ages)) > 10


@pytest.mark.parametrize("make", [lambda: StaleQueue(12, 4), lambda: MixedQueue(12, 4, SAMPLES)])
def test_a_queue_goes_on_from_its_state_with_the_same_rollouts(make):
    whole = popped(make(), 20)
    queue = make()
    popped_first = popped(queue, 7)
    again = make()
    again.load(queue.state())
    rest = []
    for step in range(7, 20):
        again.push(rollout(step, step))
        rest.append(again.pop(rng_of(step)))
    for a, b in zip(whole, popped_first + rest, strict=True):
        for name, array in a.arrays().items():
            np.testing.assert_array_equal(array, b.arrays()[name])
            assert array.dtype == b.arrays()[name].dtype


@pytest.mark.parametrize("make", [lambda: StaleQueue(0, 4), lambda: MixedQueue(0, 4, SAMPLES)])
def test_a_queue_that_holds_nothing_goes_on_too(make):
    queue = make()
    queue.load(make().state())
    queue.push(rollout(3))
    assert queue.pop(rng_of(0)).prompts[0, 0] == 3


def test_the_same_generator_gives_the_same_mixture_and_another_one_another():
    def marks(seed):
        queue = MixedQueue(16, 4, SAMPLES)
        for i in range(queue.first):
            queue.push(rollout(i))
        return [
            (queue.push(rollout(9)), queue.pop(np.random.default_rng([seed, s])))[
                1
            ].prompts.tolist()
            for s in range(8)
        ]

    assert marks(1) == marks(1)
    assert marks(1) != marks(2)


def test_rows_are_chosen_by_index_and_by_mask():
    whole = rollout(1)
    by_index, by_mask = (
        chosen_rows(whole, np.array([0, 1])),
        chosen_rows(whole, whole.tokens[:, 0] == 0),
    )
    np.testing.assert_array_equal(by_index.tokens, by_mask.tokens)
    assert by_index.n_rows == 2
