"""Judging processes: each answer has a deadline that holds, whatever it contains."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, TimeoutError
from concurrent.futures.process import BrokenProcessPool
from importlib.util import find_spec
from multiprocessing import get_context, util
from typing import NamedTuple, Self

from pebble import ProcessExpired, ProcessPool

from full_scale.reward import worker
from full_scale.reward.verdict import Verdict

GRACE = 5.0
"""Seconds after a deadline at which the pool kills a process that the kernel did not."""


class Question(NamedTuple):
    """Arguments of `judge`: an answer, the truth, whether the answer is still hidden in a text."""

    answer: str
    truth: str
    in_text: bool = False


class Judges:
    """Processes that compare answers; safe to call from any thread.

    A process that takes too long is killed by the kernel, and another takes its place. The answer
    of a process that died of anything else is given to one more.
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        cpu_seconds: float = 2.0,
        seconds: float = 10.0,
        recycle: int = 2000,
        memory: int = worker.MEMORY,
    ) -> None:
        """Remember the limits; processes start with the first question.

        Args:
            workers: processes.
            cpu_seconds: time of a processor that one answer may take. Counted this way, a busy
                machine does not change a verdict.
            seconds: time on the clock that one answer may take once a process has it.
            recycle: answers after which a process makes room for a new one.
            memory: bytes that a process may grow by.
        """
        self.workers = workers
        self.cpu_seconds = cpu_seconds
        self.seconds = seconds
        self.recycle = recycle
        self.memory = memory
        self._pool: ProcessPool | None = None
        self._end: util.Finalize | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, questions: Sequence[Question]) -> list[Verdict | None]:
        """Judge answers, all at the same time as far as there are processes.

        Returns:
            A verdict each, in order; None where a limit was hit.

        Raises:
            ModuleNotFoundError: math-verify is not installed.
            BrokenProcessPool: processes cannot be started.
        """
        asked = [self._ask(question) for question in questions]
        verdicts = []
        for question, future in zip(questions, asked, strict=True):
            try:
                verdicts.append(_answer(future))
            except (ProcessExpired, BrokenProcessPool):
                verdicts.append(self._once_more(question))
        return verdicts

    def _once_more(self, question: Question) -> Verdict | None:
        try:
            return _answer(self._ask(question))
        except ProcessExpired:  # it kills whoever looks at it
            return None

    def _ask(self, question: Question) -> "Future[Verdict]":
        with self._lock:
            if self._pool is None or not self._pool.active:
                self._pool = self._start()
            # The pool's own deadline is for a process that does not even start to judge.
            return self._pool.schedule(
                worker.work,
                args=(*question, self.cpu_seconds, self.seconds),
                timeout=self.seconds + GRACE,
            )

    def _start(self) -> ProcessPool:
        if find_spec("math_verify") is None:
            raise ModuleNotFoundError("the reward needs math-verify; pip install math-verify")
        pool = ProcessPool(
            self.workers,
            max_tasks=self.recycle,
            initializer=worker.start,
            initargs=(self.memory,),
            context=get_context("spawn"),
        )
        # An exiting process waits for its children before pebble would end them.
        self._end = util.Finalize(self, _stop, args=(pool,), exitpriority=100)
        return pool

    def close(self) -> None:
        """End the processes; a later question starts new ones."""
        with self._lock:
            end, self._end, self._pool = self._end, None, None
        if end is not None:
            end()


def _stop(pool: ProcessPool) -> None:
    pool.stop()  # type: ignore[no-untyped-call]
    pool.join()


def _answer(future: "Future[Verdict]") -> Verdict | None:
    try:
        return future.result()
    except TimeoutError:
        return None
    except ProcessExpired as death:
        if -death.exitcode in worker.DEADLINES:
            return None
        raise


shared = Judges()
"""Those of this process; a forked child gets its own."""


def _renew() -> None:
    global shared
    shared = Judges()


os.register_at_fork(after_in_child=_renew)
