"""What M2PO would do to each token around the worst ones, in the scope that each belongs to."""

from typing import Any

import numpy as np

from m2po_lab.analysis import active
from m2po_lab.analysis.keyed import Keyed
from m2po_lab.analysis.sample import row_starts
from m2po_lab.analysis.whatif import Verdict
from m2po_lab.analysis.worst import Rank, Token, Worst
from m2po_lab.logs.rows import UNKNOWN

Kept = dict[int, bool]
"""Position in a row -> whether the token keeps its gradient."""


def marked(worst: Worst, verdict: Verdict | None, scopes: Keyed, budget: float) -> list[Token]:
    """Return the worst tokens, each token of their context with `keep`.

    `keep` is false where M2PO masks the token, null where that is not known: without a verdict,
    without an advantage, or beyond the sample in the one bin of |d| that holds the threshold.

    Args:
        worst: the tokens, largest |d| first.
        verdict: M2PO's on the tokens of the sample, None if the log lacks what it needs.
        scopes: histograms of active |d| by scope, for logs beyond the sample.
        budget: M2PO's.
    """
    found = []
    for rank, token in worst.ranked:
        if verdict is None:
            keep: list[bool | None] = [None] * len(token["context"])
        elif verdict.stage.complete:
            kept = _judged(verdict, rank, token)
            keep = [kept.get(other["position"]) for other in token["context"]]
        else:
            threshold = _threshold(scopes, rank[1], _mini_batch(token), budget)
            keep = [_below(other, threshold) for other in token["context"]]
        context = [{**o, "keep": k} for o, k in zip(token["context"], keep, strict=True)]
        found.append({**token, "context": context})
    return found


def _mini_batch(token: Token) -> int:
    return UNKNOWN if token["mini_batch"] is None else int(token["mini_batch"])


def _judged(verdict: Verdict, rank: Rank, token: Token) -> Kept:
    """What the verdict says on the row of a token; empty if the row was not judged."""
    chunk, d = verdict.stage.chunk, verdict.stage.d
    _, step, key, position, _ = rank
    same = (chunk.key == np.uint64(key)) & (chunk.step == step)
    same &= chunk.mini_batch == _mini_batch(token)
    starts = row_starts(chunk)
    for row in np.flatnonzero(same).tolist():
        tokens = slice(int(starts[row]), int(starts[row + 1]))
        index = chunk.index[tokens]
        if (d[tokens][index == position] == token["log_ratio"]).any():
            return dict(zip(index.tolist(), verdict.keep[tokens].tolist(), strict=True))
    return {}


def _threshold(scopes: Keyed, step: int, mini_batch: int, budget: float) -> float:
    """Lower edge of the bin of |d| from which a scope is masked; inf where nothing is."""
    return float(active.masked(scopes.take([(step, mini_batch)]), budget).threshold[0])


def _below(token: dict[str, Any], threshold: float) -> bool | None:
    """Whether a token stays under the threshold of its scope; None if their bins are the same."""
    d, advantage = token["log_ratio"], token["advantage"]
    if d is None or advantage is None:
        return None
    if not active.is_active(np.asarray([d]), np.asarray([advantage]))[0] or threshold == np.inf:
        return True
    own, edge = active.bin_of(np.abs([d, threshold])).tolist()
    return None if own == edge else own < edge
