"""Rows that are trained on more than once: they show which updates belong to one rollout batch."""

from dataclasses import dataclass
from itertools import islice

import numpy as np

from m2po_lab.integrity.additive import Span
from m2po_lab.integrity.flat import Flat
from m2po_lab.logs.hashing import bytes_hash, mix
from m2po_lab.logs.rows import UNKNOWN

MOST_ROWS = 64
"""Rows that are remembered, those with the smallest hashes: a fair sample, whatever the order.

Of 16 mini-batches with two epochs all are met by 64 rows with a chance of 77 %, of 8 with 99.8 %.
"""


@dataclass(frozen=True)
class Reuse:
    """Rows of the oldest sampler version, and when each was trained on.

    Only that version is kept: where the log has newer ones, they tell more (`analysis.freshness`).

    Args:
        version: the smallest sampler version.
        visits: hash of a row -> its first and last trainer version.
    """

    version: int
    visits: dict[int, Span]

    def __add__(self, other: "Reuse") -> "Reuse":
        """Evidence of both; a row that is in both was met in both."""
        if self.version != other.version:
            return self if self.version < other.version else other
        table = dict(self.visits)
        for key, visit in other.visits.items():
            table[key] = table[key] + visit if key in table else visit
        return Reuse(self.version, {key: table[key] for key in sorted(table)[:MOST_ROWS]})

    @property
    def last_update(self) -> float:
        """Last trainer version that visits link to the first one.

        Two mini-batches of one rollout batch in two epochs are met at versions 0, 2 and 1, 3: the
        stretches overlap. Rollout batches one after the other do not.
        """
        reach = float(self.version)
        for visit in sorted(self.visits.values(), key=lambda span: span.low):
            if visit.low <= reach:
                reach = max(reach, visit.high)
        return reach


def reuse(flat: Flat) -> Reuse | None:
    """Note the rows of a batch; None where no row has an id and a known lag.

    A row is known by its id and its first and last behavior log-prob, for ids may start anew.
    """
    ids, behavior = flat.rows.row_id, flat.logp.get("behavior_logp")
    low, high = flat.row_lag
    known = np.flatnonzero(low != UNKNOWN)
    if ids is None or behavior is None or flat.rows.train_version is None or not known.size:
        return None
    trained = flat.rows.train_version[known]
    version = trained - high[known]
    oldest = int(version.min())
    chosen = (version == oldest) & np.array([ids[row] is not None for row in known.tolist()])
    row, at = known[chosen], trained[chosen].astype(np.float64)
    key = np.array([bytes_hash((ids[i] or "").encode()) for i in row.tolist()], dtype=np.uint64)
    start = flat.starts[row]
    for end in (start, start + flat.lengths[row] - 1):
        key = mix(key ^ mix(behavior[end].view(np.uint64)))
    keys, code = np.unique(key, return_inverse=True)
    first, last = np.full(keys.size, np.inf), np.full(keys.size, -np.inf)
    np.minimum.at(first, code, at)
    np.maximum.at(last, code, at)
    table = zip(keys.tolist(), first.tolist(), last.tolist(), strict=True)
    visits = {name: Span(low, high) for name, low, high in islice(table, MOST_ROWS)}
    return Reuse(oldest, visits)
