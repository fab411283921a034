"""Three ways to put sampling and training in time, simulated event by event.

`synchronous`: all GPUs sample a batch, then all train on it. `one_step_off`: some GPUs sample the
next batch while the others train on this one. `asynchronous`: engines never wait for each other;
training takes the first finished groups, and sampling stops only when it is too far ahead.
"""

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from full_scale.plan.engine import Engine, Response
from full_scale.plan.workload import Workload

DRAWN = 256
"""Prompts whose lengths are drawn at once."""


@dataclass(frozen=True)
class Timeline:
    """What came out of a schedule.

    Attributes:
        steps: seconds of each step, from the end of one to the end of the next.
        sampling: seconds of sampling a batch where it has a beginning and an end, else an empty
            list.
        training: seconds of training on each batch.
        waiting: seconds that training waited for each batch.
        busy_fraction: share of time in which engines sampled.
        staleness: age of responses when they were trained on, updates: mean of each batch.
        oldest: largest age, updates.
        submitted: responses that were started or queued.
        trained: responses that were trained on.
        in_flight: responses that were not: in engines, or in unfinished or waiting groups.
    """

    steps: list[float]
    sampling: list[float]
    training: list[float]
    waiting: list[float]
    busy_fraction: float
    staleness: list[float]
    oldest: int
    submitted: int
    trained: int
    in_flight: int


def synchronous(work: Workload, gpus: int, steps: int) -> Timeline:
    """Sample, then train, on the same GPUs."""
    prompts, spans, trains, busy = _prompts(work), [], [], 0.0
    for _ in range(steps):
        batch, span, used = _sample(work, prompts, gpus, version=0)
        busy += used
        spans.append(span)
        trains.append(_train_seconds(work, batch, gpus))
    rest = work.switch_seconds + work.other_seconds
    whole = [span + train + rest for span, train in zip(spans, trains, strict=True)]
    rows = steps * work.rows
    return Timeline(
        steps=whole,
        sampling=spans,
        training=trains,
        waiting=[span + work.switch_seconds for span in spans],
        busy_fraction=busy / len(_engines(work, gpus)) / sum(whole),
        staleness=[0.0] * steps,
        oldest=0,
        submitted=rows,
        trained=rows,
        in_flight=0,
    )


def one_step_off(work: Workload, sampling: int, training: int, steps: int) -> Timeline:
    """Sample the next batch on some GPUs while others train on this one."""
    prompts = _prompts(work)
    batch, _, _ = _sample(work, prompts, sampling, version=0)
    spans, trains, whole, busy = [], [], [], 0.0
    for _ in range(steps):
        following, span, used = _sample(work, prompts, sampling, version=0)
        spans.append(span)
        trains.append(_train_seconds(work, batch, training))
        whole.append(max(span, trains[-1] + work.other_seconds) + work.sync_seconds)
        busy += used
        batch = following
    rows = work.rows
    return Timeline(
        steps=whole,
        sampling=spans,
        training=trains,
        waiting=[
            step - train - work.other_seconds for step, train in zip(whole, trains, strict=True)
        ],
        busy_fraction=busy / len(_engines(work, sampling)) / sum(whole),
        # A batch is sampled with the weights before the update that runs meanwhile.
        staleness=[float(work.updates)] * steps,
        oldest=work.updates,
        submitted=(steps + 1) * rows,
        trained=steps * rows,
        in_flight=rows,
    )


def asynchronous(
    work: Workload, sampling: int, training: int, steps: int, ahead: float
) -> Timeline:
    """Let engines run; train on the first groups that are finished.

    Args:
        work: of a step.
        sampling: GPUs of the engines.
        training: GPUs of the trainer.
        steps: batches to train on.
        ahead: batches that sampling may be ahead of training, beside the one in training: a group
            is started only while less than (ahead + 1) batches are started and not yet trained.
    """
    return _Asynchronous(work, sampling, training, ahead).run(steps)


class _Asynchronous:
    def __init__(self, work: Workload, sampling: int, training: int, ahead: float) -> None:
        self.work, self.gpus = work, training
        self.most = int((ahead + 1) * work.groups)
        self.engines = _engines(work, sampling)
        self.prompts = _prompts(work)
        self.started = self.taken = self.version = 0
        self.open: dict[int, list[Response]] = {}
        self.ready: deque[list[Response]] = deque()
        self.events: list[tuple[float, int, int]] = []
        self.stamps = [0] * len(self.engines)

    def run(self, steps: int) -> Timeline:
        work, now = self.work, 0.0
        ends, trains, waits, ages, oldest = [0.0], [], [], [], 0
        self._refill(now)
        for _ in range(steps):
            now = self._until_ready(now)
            waits.append(now - ends[-1])
            groups = [self.ready.popleft() for _ in range(work.groups)]
            batch = [response for group in groups for response in group]
            age = [self.version - response.version for response in batch]
            ages.append(sum(age) / len(age))
            oldest = max(oldest, *age)
            trains.append(_train_seconds(work, batch, self.gpus))
            now = self._until(now + trains[-1] + work.other_seconds)
            self.version += work.updates
            self.taken += work.groups
            for index, engine in enumerate(self.engines):
                engine.advance(now)
                engine.pause(work.sync_seconds)
                self._expect(index)
            now += work.sync_seconds
            ends.append(now)
            self._refill(now)
        rows = work.rows
        flying = sum(engine.load for engine in self.engines)
        flying += sum(len(group) for group in (*self.open.values(), *self.ready))
        return Timeline(
            steps=[later - earlier for earlier, later in pairwise(ends)],
            sampling=[],
            training=trains,
            waiting=waits,
            busy_fraction=sum(e.busy for e in self.engines) / len(self.engines) / now,
            staleness=ages,
            oldest=oldest,
            submitted=self.started * work.samples,
            trained=steps * rows,
            in_flight=flying,
        )

    def _refill(self, now: float) -> None:
        """Start prompts as far as the bound allows, each response where least is to do."""
        loads = [(engine.load, index) for index, engine in enumerate(self.engines)]
        heapq.heapify(loads)
        touched = set()
        while self.started - self.taken < self.most and loads[0][0] < self.work.decoding.sequences:
            self.open[self.started] = []
            for length in next(self.prompts):
                load, index = loads[0]
                heapq.heapreplace(loads, (load + 1, index))
                if index not in touched:
                    self._catch_up(index, now)
                    touched.add(index)
                self.engines[index].submit(
                    Response(self.started, self.work.prompt, length, self.version)
                )
            self.started += 1
        for index in touched:
            self._expect(index)

    def _catch_up(self, index: int, now: float) -> None:
        engine = self.engines[index]
        if engine.now < now:
            engine.advance(now)

    def _expect(self, index: int) -> None:
        """Note when the engine will finish a response; earlier notes of it are void."""
        self.stamps[index] += 1
        end = self.engines[index].next_end()
        if end < float("inf"):
            heapq.heappush(self.events, (end, index, self.stamps[index]))

    def _next(self) -> float:
        while self.events and self.stamps[self.events[0][1]] != self.events[0][2]:
            heapq.heappop(self.events)
        return self.events[0][0] if self.events else float("inf")

    def _finish_one(self) -> float:
        time, index, _ = heapq.heappop(self.events)
        for response in self.engines[index].finish():
            group = self.open[response.group]
            group.append(response)
            if len(group) == self.work.samples:
                self.ready.append(self.open.pop(response.group))
        self._expect(index)
        self._refill(time)
        return time

    def _until_ready(self, now: float) -> float:
        while len(self.ready) < self.work.groups:
            self._next()
            now = max(now, self._finish_one())
        return now

    def _until(self, time: float) -> float:
        while self._next() <= time:
            self._finish_one()
        return time


def _sample(
    work: Workload, prompts: Iterator[list[float]], gpus: int, version: int
) -> tuple[list[Response], float, float]:
    """Sample a batch from idle engines: the batch, the time until its last response, busy time."""
    engines = _engines(work, gpus)
    batch = [
        Response(group, work.prompt, length, version)
        for group, row in zip(range(work.groups), prompts, strict=False)
        for length in row
    ]
    for index, response in enumerate(batch):
        engines[index % len(engines)].submit(response)
    for engine in engines:
        while engine.load:
            engine.finish()
    return batch, max(engine.now for engine in engines), sum(engine.busy for engine in engines)


def _train_seconds(work: Workload, batch: list[Response], gpus: int) -> float:
    tokens = [response.prompt + response.length for response in batch]
    return work.training.seconds(sum(tokens), sum(each * each for each in tokens), gpus)


def _engines(work: Workload, gpus: int) -> list[Engine]:
    reserve = work.lengths.moment(1)
    return [Engine(work.decoding, reserve) for _ in range(gpus // work.engine_gpus)]


def _prompts(work: Workload) -> Iterator[list[float]]:
    """Lengths of the responses of one prompt after the other, without end."""
    rng = np.random.default_rng(work.seed)
    while True:
        yield from work.lengths.sample(rng, DRAWN * work.samples).reshape(DRAWN, -1).tolist()
