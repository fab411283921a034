"""Were the rollouts fresh, or does lag count more than the updates made on one rollout batch?

A lag of three may be the fourth update on a batch that the trainer's own weights sampled, or a
batch that waited. The log has to show which: `freshness` looks for the number of updates that one
rollout batch gets, and where nothing shows it, lag is staleness.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from m2po_lab.integrity import BatchIntegrity
from m2po_lab.integrity.reuse import Reuse
from m2po_lab.integrity.steps import Cell
from m2po_lab.logs.rows import UNKNOWN

STALL = 2
"""A sampler version that lasts this many times as long as usual has been left behind.

In the real runs of the tests a version lasts 3 to 4 updates (verl) and 4 (TRL).
"""


@dataclass(frozen=True)
class Freshness:
    """What the lags of a ratio say about its rollouts.

    Args:
        is_fresh: all lags lie within the updates made on one rollout batch.
        why: what in the log says so, or what speaks against it; a clause for a sentence.
        updates: one rollout batch usually gets so many, if the log shows it.
        longest: the most trainer versions that one sampler version spans.
    """

    is_fresh: bool
    why: str
    updates: int | None
    longest: int


def freshness(integrity: BatchIntegrity, ratio: str) -> Freshness:
    """Judge the known lags of one ratio.

    Rollouts are fresh if every trainer version used the newest sampler version there was, lag 0
    was seen, and no lag reaches the number of updates that one batch gets.
    """
    cells = [key for key in integrity.cells.get(ratio, ()) if key[2] != UNKNOWN]
    if not cells:
        return Freshness(False, "no token has a known lag", None, 0)
    versions = sorted({trained - lag for _, trained, lag in cells})
    longest = max(lag for *_, lag in cells) + 1
    if any(_newest(versions, trained) != trained - lag for _, trained, lag in cells):
        why = "data was sampled by an older version than the newest there was"
        return Freshness(False, why, None, longest)
    if not any(lag == 0 for *_, lag in cells):
        why = "no token was sampled by the trainer's own version"
        return Freshness(False, why, None, longest)
    known = updates_a_batch(cells, versions, integrity.reuse)
    if known is None:
        why = (
            f"{longest} updates used one sampler version, and nothing in the log shows that they "
            "were made on one rollout batch"
        )
        return Freshness(False, why, None, longest)
    usual, most = known
    if longest > most:
        why = f"{longest} updates used one sampler version, but a rollout batch gets {usual}"
        return Freshness(False, why, usual, longest)
    return Freshness(True, "all lags lie within the updates of one rollout batch", usual, longest)


def _newest(versions: list[int], trained: int) -> int:
    """The newest of the sampler versions at the time of a trainer version."""
    at = int(np.searchsorted(versions, trained, side="right"))
    return versions[max(at - 1, 0)]


def updates_a_batch(
    cells: Iterable[Cell], versions: list[int], reuse: Reuse | None
) -> tuple[int, int] | None:
    """Return how many updates one rollout batch gets, usually and at most; None if unknown.

    Where a step holds several trainer versions, a step is a batch. Else the sampler's clock tells:
    a version lasts until the next one comes, and `STALL` times the usual span is allowed. Where
    only one version is there, rows that were trained on again link the updates of their batch.

    Args:
        cells: (step, trainer version, lag) with known lags.
        versions: sampler versions, ascending.
        reuse: rows of the first of them.
    """
    steps: dict[int, list[int]] = {}
    for step, trained, _ in cells:
        if step != UNKNOWN:
            steps.setdefault(step, []).append(trained)
    widest = max((max(trained) - min(trained) + 1 for trained in steps.values()), default=1)
    if widest > 1:
        return widest, widest
    if len(versions) > 1:
        usual = round(float(np.median(np.diff(versions))))
        return usual, STALL * usual
    if reuse is not None and any(visit.low < visit.high for visit in reuse.visits.values()):
        linked = int(reuse.last_update) - reuse.version + 1
        return linked, linked
    return None
