"""The reward of the paper, from any thread and with a limit of time that holds."""

import threading
import time

import pytest

from full_scale import reward
from full_scale.reward import Judge


@pytest.fixture(scope="module")
def judge():
    judge = Judge()
    yield judge
    judge.close()


@pytest.mark.parametrize(
    ("solution", "truth", "expected"),
    [
        ("7", "7", 1.0),
        (r"so it is \boxed{\frac{1}{2}}", "0.5", 1.0),
        ("the answer is 8", "7", 0.1),
        ("no idea", "7", 0.0),
        ("", "7", 0.0),
    ],
)
def test_right_is_one_readable_a_tenth_and_the_rest_nothing(judge, solution, truth, expected):
    assert judge(solution, truth) == expected


def test_it_scores_outside_the_main_thread_as_verl_calls_it(judge):
    scores = []
    threads = [threading.Thread(target=lambda: scores.append(judge("7", "7"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scores == [1.0] * 3


def test_an_answer_that_hangs_is_killed_and_the_next_is_scored(monkeypatch):
    judge = Judge(seconds=3)
    monkeypatch.setattr(reward, "score", eval)
    began = time.monotonic()
    assert judge("__import__('time').sleep(600)", {}) == 0.0
    assert 3 <= time.monotonic() - began < 60
    monkeypatch.undo()
    judge.seconds = 60
    assert judge("7", "7") == 1.0
    judge.close()
