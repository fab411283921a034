"""An engine in simulated time against one that takes token after token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_work import DECODING

from full_scale.plan.cost import Decoding
from full_scale.plan.engine import Engine, Response

lengths = st.lists(st.integers(1, 60), min_size=1, max_size=12)


def token_by_token(cost, prompt, responses):
    """When each response ends, one token at a time; the cache grows by one token of each."""
    left, now, ends = (
        list(responses),
        cost.prefill * prompt * len(responses),
        [None] * len(responses),
    )
    cached = prompt * len(responses)
    while any(ends[i] is None for i in range(len(left))):
        running = [i for i in range(len(left)) if ends[i] is None]
        # The parabola takes the cache in the middle of a token's time.
        now += cost.token_seconds(len(running), cached + len(running) / 2)
        cached += len(running)
        for i in running:
            left[i] -= 1
            if left[i] == 0:
                ends[i] = now
                cached -= prompt + responses[i]
    return ends


def run(engine):
    ends = {}
    while engine.load:
        for response in engine.finish():
            ends[response.group] = engine.now
    return [ends[group] for group in sorted(ends)]


@given(responses=lengths, prompt=st.integers(0, 50), cached=st.floats(0, 1e-3))
def test_it_ends_each_response_when_one_that_steps_by_tokens_does(responses, prompt, cached):
    cost = Decoding(base=0.01, each=1e-3, cached=cached, prefill=1e-4, capacity=1e9, sequences=64)
    engine = Engine(cost, reserve=0)
    for group, length in enumerate(responses):
        engine.submit(Response(group, prompt, length, 0))
    assert run(engine) == pytest.approx(token_by_token(cost, prompt, responses))
    assert engine.tokens == pytest.approx(sum(responses))
    assert engine.busy == pytest.approx(engine.now)
    assert engine._cached == pytest.approx(0, abs=1e-6)


@given(responses=lengths, at=st.lists(st.floats(0.001, 0.999), max_size=5))
def test_looking_at_it_in_between_changes_nothing(responses, at):
    engines = [Engine(DECODING, reserve=0) for _ in range(2)]
    for engine in engines:
        for group, length in enumerate(responses):
            engine.submit(Response(group, 10, length, 0))
    watched = engines[1]
    for share in sorted(at):
        end = watched.next_end()
        watched.advance(watched.now + share * (end - watched.now))
    assert run(watched) == pytest.approx(run(engines[0]))


@given(responses=lengths, sequences=st.integers(1, 4))
def test_no_more_run_than_there_are_sequences_and_all_are_finished(responses, sequences):
    cost = Decoding(base=0.01, each=0, cached=0, prefill=0, capacity=1e9, sequences=sequences)
    engine = Engine(cost, reserve=0)
    for group, length in enumerate(responses):
        engine.submit(Response(group, 0, length, 0))
        assert len(engine._running) <= sequences
    ends = run(engine)
    assert len(ends) == len(responses)
    assert engine.tokens == pytest.approx(sum(responses))
    # Each sequence is busy at least as long as the work needs, and no longer than all in a row.
    assert sum(responses) * 0.01 / sequences <= max(ends) * (1 + 1e-9)
    assert max(ends) <= sum(responses) * 0.01 * (1 + 1e-9)


def test_a_full_cache_keeps_responses_waiting_but_one_always_runs():
    cost = Decoding(base=0.01, each=0, cached=0, prefill=0, capacity=100, sequences=64)
    engine = Engine(cost, reserve=50)
    for group in range(3):
        engine.submit(Response(group, 10, 40, 0))
    assert len(engine._running) == 1
    assert len(run(engine)) == 3


def test_a_pause_moves_everything_that_runs():
    engines = [Engine(DECODING, reserve=0) for _ in range(2)]
    for engine in engines:
        engine.submit(Response(0, 0, 50, 0))
    engines[1].pause(2.5)
    assert engines[1].next_end() == pytest.approx(engines[0].next_end() + 2.5)
    (plain,), (paused,) = run(engines[0]), run(engines[1])
    assert paused == pytest.approx(plain + 2.5)
    assert engines[1].busy == pytest.approx(engines[0].busy)
