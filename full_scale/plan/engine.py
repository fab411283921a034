"""A sampling engine in simulated time: all its sequences get their next token together.

A token takes `base + each * b + cached * k` seconds for b sequences with k cached tokens, and k
grows by b with each. The time of n tokens is then a parabola in n, so that the simulation jumps
from one finished response to the next.
"""

import heapq
import math
from collections import deque
from dataclasses import dataclass, field

from full_scale.plan.cost import Decoding


@dataclass(frozen=True, slots=True)
class Response:
    """A response that is to be sampled.

    Attributes:
        group: number of its prompt.
        prompt: tokens.
        length: tokens of the response.
        version: of the weights at its start, optimizer updates.
    """

    group: int
    prompt: float
    length: float
    version: int


@dataclass
class Engine:
    """One vLLM engine.

    Attributes:
        cost: time of a token.
        reserve: tokens of the cache kept free for each response beside its prompt when it starts.
        now: seconds.
        busy: seconds in which it sampled.
        tokens: sampled.
    """

    cost: Decoding
    reserve: float
    now: float = 0.0
    busy: float = 0.0
    tokens: float = 0.0
    _waiting: deque[Response] = field(default_factory=deque)
    _running: list[tuple[float, int, Response]] = field(default_factory=list)
    _progress: float = 0.0
    _cached: float = 0.0
    _prefill: float = 0.0
    _order: int = 0

    @property
    def load(self) -> int:
        """Responses that run or wait."""
        return len(self._running) + len(self._waiting)

    def submit(self, response: Response) -> None:
        """Queue a response; it starts as soon as a sequence and cache are free."""
        self._waiting.append(response)
        self._start()

    def _start(self) -> None:
        while self._waiting and len(self._running) < self.cost.sequences:
            response = self._waiting[0]
            needed = response.prompt + self.reserve
            held = self._cached + self.reserve * len(self._running)
            if self._running and held + needed > self.cost.capacity:
                return
            self._waiting.popleft()
            self._prefill += self.cost.prefill * response.prompt
            self._cached += response.prompt
            self._order += 1
            ends = self._progress + response.length
            heapq.heappush(self._running, (ends, self._order, response))

    def next_end(self) -> float:
        """When the next response will be finished; infinite without one."""
        if not self._running:
            return math.inf
        return self.now + self._prefill + self._seconds(self._running[0][0] - self._progress)

    def advance(self, to: float) -> None:
        """Sample until a time before the next end."""
        seconds, self.now = to - self.now, to
        if not self._running:
            return
        self.busy += seconds
        paid = min(self._prefill, seconds)
        self._prefill -= paid
        self._gain(min(self._tokens(seconds - paid), self._running[0][0] - self._progress))

    def finish(self) -> list[Response]:
        """Sample until the next end; what is finished then leaves, and others start."""
        end = self.next_end()
        self.busy += end - self.now
        self.now, self._prefill = end, 0.0
        self._gain(self._running[0][0] - self._progress)
        self._progress = self._running[0][0]
        finished = []
        while self._running and self._running[0][0] <= self._progress:
            response = heapq.heappop(self._running)[2]
            self._cached -= response.prompt + response.length
            finished.append(response)
        self._start()
        return finished

    def pause(self, seconds: float) -> None:
        """Stand still, for new weights; what runs goes on afterwards."""
        self.now += seconds

    def _gain(self, tokens: float) -> None:
        self._progress += tokens
        self._cached += tokens * len(self._running)
        self.tokens += tokens * len(self._running)

    def _seconds(self, tokens: float) -> float:
        """Time of so many tokens of each sequence that runs."""
        running = len(self._running)
        slope = self.cost.cached * running
        return tokens * (self.cost.token_seconds(running, self._cached) + slope * tokens / 2)

    def _tokens(self, seconds: float) -> float:
        """Tokens of each sequence in so much time; the inverse of `_seconds`."""
        running = len(self._running)
        slope = self.cost.cached * running
        first = self.cost.token_seconds(running, self._cached)
        return 2 * seconds / (first + math.sqrt(first**2 + 2 * slope * seconds))
