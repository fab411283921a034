"""The three schedules: what they keep, and their limits in closed form."""

from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_work import DECODING, equal, small

from full_scale.plan.lengths import Lengths
from full_scale.plan.schedule import asynchronous, one_step_off, synchronous

STEPS = 6


def span(work, engines):
    """Time of a batch of equal responses on so many engines, in one go."""
    each, length = work.rows / engines, work.lengths.moment(1)
    decoding = work.decoding
    prefill = decoding.prefill * work.prompt * each
    cached = each * (work.prompt + length / 2)
    return prefill + length * decoding.token_seconds(each, cached)


def train(work, gpus):
    length = work.prompt + work.lengths.moment(1)
    return work.training.seconds(work.rows * length, work.rows * length**2, gpus)


def test_equal_responses_in_turns_take_what_the_formula_says():
    work = equal()
    line = synchronous(work, 4, STEPS)
    rest = work.switch_seconds + work.other_seconds
    assert line.sampling == pytest.approx([span(work, 4)] * STEPS)
    assert line.training == pytest.approx([train(work, 4)] * STEPS)
    assert line.steps == pytest.approx([span(work, 4) + train(work, 4) + rest] * STEPS)
    assert line.busy_fraction == pytest.approx(span(work, 4) / line.steps[0])


@pytest.mark.parametrize(("sampling", "training"), [(1, 3), (3, 1)])
def test_equal_responses_one_step_off_take_the_longer_of_both(sampling, training):
    work = equal()
    line = one_step_off(work, sampling, training, STEPS)
    longer = max(span(work, sampling), train(work, training) + work.other_seconds)
    assert line.steps == pytest.approx([longer + work.sync_seconds] * STEPS)


def test_asynchronous_training_that_is_slow_never_waits_once_there_is_a_batch():
    work = equal()
    line = asynchronous(work, 4, 1, STEPS, ahead=4)
    period = train(work, 1) + work.other_seconds + work.sync_seconds
    assert span(work, 4) < period
    assert line.waiting[1:] == pytest.approx([0] * (STEPS - 1), abs=1e-9)
    assert line.steps[1:] == pytest.approx([period] * (STEPS - 1))


def test_asynchronous_sampling_that_is_slow_never_stops():
    work = equal(sync_seconds=0.0)
    line = asynchronous(work, 1, 64, STEPS, ahead=4)
    assert line.busy_fraction == pytest.approx(1)
    # Full engines give tokens at one rate, so each batch takes as long.
    tokens = work.rows * work.lengths.moment(1)
    rate = work.decoding.sequences / work.decoding.token_seconds(
        work.decoding.sequences, work.decoding.sequences * (work.prompt + 50)
    )
    assert line.steps[-1] == pytest.approx(tokens / rate, rel=0.05)


def test_nothing_ahead_means_data_of_the_current_weights():
    line = asynchronous(small(), 2, 2, STEPS, ahead=0)
    assert line.oldest == 0


setups = {
    "seed": st.integers(0, 1000),
    "sampling": st.integers(1, 6),
    "training": st.integers(1, 6),
    "ahead": st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    "sequences": st.sampled_from([4, 64]),
}


@settings(max_examples=40, deadline=None)
@given(**setups)
def test_every_response_is_trained_on_or_in_flight_and_none_is_too_old(
    seed, sampling, training, ahead, sequences
):
    work = small(seed=seed, decoding=replace(DECODING, sequences=sequences))
    line = asynchronous(work, sampling, training, STEPS, ahead)
    assert line.trained == STEPS * work.rows
    assert line.submitted == line.trained + line.in_flight
    # Beside the batch in training no more is started than the bound allows.
    assert line.in_flight <= (ahead + 1) * work.rows
    assert 0 < line.busy_fraction <= 1 + 1e-9
    assert all(step > 0 for step in line.steps)
    assert all(wait >= -1e-9 for wait in line.waiting)
    parts = [
        wait + seconds + work.other_seconds + work.sync_seconds
        for wait, seconds in zip(line.waiting, line.training, strict=True)
    ]
    assert line.steps == pytest.approx(parts)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), gpus=st.integers(2, 6))
def test_the_same_seed_gives_the_same_times_and_the_same_work_in_every_schedule(seed, gpus):
    work = small(seed=seed)
    first = [
        synchronous(work, gpus, STEPS),
        one_step_off(work, 1, gpus, STEPS),
        asynchronous(work, gpus, gpus, STEPS, 1),
    ]
    again = [
        synchronous(work, gpus, STEPS),
        one_step_off(work, 1, gpus, STEPS),
        asynchronous(work, gpus, gpus, STEPS, 1),
    ]
    assert first == again
    # In turns and one step off train on the same batches, in the same order.
    assert first[0].training == pytest.approx(first[1].training)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), sampling=st.integers(1, 4), training=st.integers(1, 4))
def test_letting_sampling_run_ahead_never_makes_a_run_longer(seed, sampling, training):
    work = small(seed=seed, sync_seconds=0.0)
    runs = [sum(asynchronous(work, sampling, training, STEPS, n).steps) for n in (0, 1, 3)]
    assert runs[0] >= runs[1] * 0.98
    assert runs[1] >= runs[2] * 0.98


def test_with_a_heavier_tail_the_same_tokens_take_longer_to_sample():
    seconds = []
    for sigma in (0.0, 0.5, 1.0, 1.5):
        lengths = Lengths.with_mean(100.0, sigma, 5000.0)
        seconds.append(fmean(synchronous(small(lengths=lengths), 4, STEPS).sampling))
    assert seconds == sorted(seconds)
    assert seconds[-1] > 3 * seconds[0]
