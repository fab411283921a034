"""Which training step of a run is evaluated, where files hold several."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from full_scale.errors import UnusableError
from full_scale.evaluation.estimate import average
from full_scale.evaluation.evaluate import counted
from full_scale.evaluation.generations import Sample

LAST, BEST = "last", "best"


def of_step(samples: Sequence[Sample], which: str) -> tuple[int | None, list[Sample]]:
    """Samples of one step.

    Args:
        samples: scored ones.
        which: a number; `last`; or `best`, the highest mean over sets, which the paper reports. An
            interval of the best step does not know that it was chosen.

    Returns:
        The step, and its samples; None and all of them if no sample says its step.

    Raises:
        UnusableError: no sample is of that step.
    """
    by_step: defaultdict[int | None, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_step[sample.step].append(sample)
    numbers = [step for step in by_step if step is not None]
    if not numbers:
        return None, list(samples)
    if which == BEST:
        chosen = max(numbers, key=lambda step: _mean(by_step[step]))
    else:
        chosen = max(numbers) if which == LAST else int(which)
    if chosen not in by_step:
        there = ", ".join(map(str, sorted(numbers)))
        raise UnusableError("--step", f"no generation is of step {which}", f"one of {there}")
    return chosen, by_step[chosen]


def _mean(samples: Sequence[Sample]) -> float:
    means = []
    for problems in counted(samples).values():
        right, total = zip(*problems.values(), strict=True)
        means.append(average(right, total).mean())
    return float(np.mean(means))
