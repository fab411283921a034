"""Reward of the paper: 1 for a right answer, .1 for one that can at least be read, else 0.

For verl: `reward.custom_reward_function.path=pkg://full_scale.reward`. math-verify guards its
parser with signals, which exist in the main thread only, and verl calls rewards in others; so the
parser runs in a process of its own, which is killed when an answer takes too long.
"""

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures import TimeoutError as TooLong
from concurrent.futures.process import BrokenProcessPool
from typing import Any

RIGHT, READABLE, NOTHING = 1.0, 0.1, 0.0
SECONDS = 20.0
"""One answer may take so long, the start of a new process included."""


def score(solution: str, truth: str) -> float:
    """Score one answer, in this process and without a limit of time.

    Args:
        solution: the response; the last expression that math-verify finds is the answer.
        truth: the right answer, as a number or LaTeX.

    Returns:
        1 if both are equal as mathematics, .1 if an answer was found, else 0.
    """
    from math_verify import parse, verify

    found = parse(solution, parsing_timeout=None)
    if not found:
        return NOTHING
    right = parse(f"${truth}$", parsing_timeout=None)
    return RIGHT if verify(right, found, timeout_seconds=None) else READABLE


class Judge:
    """Scores answers in a process of its own, one at a time, and replaces it when it hangs."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._pool: ProcessPoolExecutor | None = None
        self._lock = threading.Lock()

    def __call__(self, solution: str, truth: str) -> float:
        """Score one answer; one that takes too long, or kills the process, counts as wrong."""
        with self._lock:
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(1, mp_context=context)
            try:
                return self._pool.submit(score, solution, truth).result(self.seconds)
            except (TooLong, BrokenProcessPool):
                self.close()
                return NOTHING

    def close(self) -> None:
        """Kill the process."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list(pool._processes.values()):
                process.kill()
            pool.shutdown(wait=True, cancel_futures=True)


JUDGE = Judge()


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **unused: Any
) -> float:
    """Score an answer with the signature that verl calls."""
    return JUDGE(solution_str, str(ground_truth))
