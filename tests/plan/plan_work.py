"""A small workload with round numbers."""

from dataclasses import replace

from full_scale.plan.cost import Decoding, Training
from full_scale.plan.lengths import Lengths
from full_scale.plan.workload import Workload

DECODING = Decoding(base=0.01, each=1e-4, cached=1e-7, prefill=1e-5, capacity=1e9, sequences=64)


def small(**changes):
    """16 prompts with 4 responses of 100 tokens on average."""
    work = Workload(
        groups=16,
        samples=4,
        updates=4,
        prompt=20.0,
        lengths=Lengths.with_mean(100.0, 1.0, 800.0),
        decoding=DECODING,
        engine_gpus=1,
        training=Training(seconds_a_token=1e-3, seconds_a_square=1e-7),
        switch_seconds=0.5,
        sync_seconds=0.1,
        other_seconds=0.2,
        seed=0,
    )
    return replace(work, **changes)


def equal(**changes):
    """The same without spread: every response has 100 tokens."""
    return small(lengths=Lengths.with_mean(100.0, 0.0, 800.0), **changes)
