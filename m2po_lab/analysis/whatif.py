"""What-if: every objective applied to the tokens of the log, after the pass.

The tokens are those of `Sample`: all of the log up to its bound, else of a share of the rows. Rows
are cut into slices, and mini-batch objectives get one scope (mini-batch, else step, else log) each,
through the same `core.objectives` that a trainer calls.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from m2po_lab.analysis.bins import Bools, Floats, Ints
from m2po_lab.analysis.chunk import Chunk
from m2po_lab.analysis.options import Options
from m2po_lab.analysis.sample import row_starts, scopes, slices, some_rows
from m2po_lab.core.batch import LOGP_FIELDS, RATIOS, TokenBatch
from m2po_lab.core.objectives import OBJECTIVES, Objective, objective
from m2po_lab.logs.rows import UNKNOWN

M2PO = ("m2po", "m2po_released", "m2po_areal", "m2po_all_tokens")
MOST_SCOPES = 1000
"""More mini-batches are thinned for objectives of that scope: each costs a few milliseconds."""
SCOPE_COLUMNS = {"mini-batch": ("step", "mini_batch"), "step": ("step",)}


@dataclass(frozen=True, eq=False)
class Stage:
    """The tokens that objectives judge, in canonical order.

    Attributes:
        chunk: tokens with a finite log-ratio and, if the log has advantages, a finite one.
        ratio: the ratio that stands for current/behavior.
        d: its log-ratio, (N,).
        advantage: (N,), None where the log has none.
        complete: these are all such tokens of the log.
    """

    chunk: Chunk
    ratio: str
    d: Floats
    advantage: Floats | None
    complete: bool

    def batch(self, rows: slice, advantage: Floats) -> TokenBatch:
        """Return some rows as a batch; the ratio's two columns become current and behavior."""
        starts = self._starts[rows.start : rows.stop + 1]
        tokens = slice(int(starts[0]), int(starts[-1]))
        columns = self.chunk.columns
        top, bottom = RATIOS[self.ratio]
        proximal = columns.get("proximal_logp") if self.ratio == "current/behavior" else None
        entropy = columns.get("entropy")
        return TokenBatch(
            behavior_logp=columns[bottom][tokens],
            current_logp=columns[top][tokens],
            proximal_logp=None if proximal is None else proximal[tokens],
            entropy=None if entropy is None else entropy[tokens],
            advantage=advantage[tokens],
            lengths=np.diff(starts),
        )

    def cuts(self, scope: str) -> Iterator[slice]:
        """Slices of rows that an objective of this scope may judge one by one."""
        if scope not in SCOPE_COLUMNS:
            return slices(self.chunk)
        return scopes(self.chunk, tuple(getattr(self.chunk, n) for n in SCOPE_COLUMNS[scope]))

    @cached_property
    def _starts(self) -> Ints:
        return row_starts(self.chunk)

    def fewer(self, scope: str) -> "Stage":
        """Return this stage, or one of `MOST_SCOPES` evenly spaced scopes if it has more."""
        cuts = list(self.cuts(scope)) if scope in SCOPE_COLUMNS else []
        if len(cuts) <= MOST_SCOPES:
            return self
        chosen = np.zeros(self.chunk.n_rows, dtype=np.bool_)
        for i in range(MOST_SCOPES):
            chosen[cuts[i * len(cuts) // MOST_SCOPES]] = True
        tokens = chosen[self.chunk.row]
        advantage = None if self.advantage is None else self.advantage[tokens]
        return Stage(some_rows(self.chunk, chosen), self.ratio, self.d[tokens], advantage, False)

    @property
    def scope(self) -> str:
        """What stands for the optimizer's mini-batch: "mini-batch", "step" or "log"."""
        if (self.chunk.mini_batch != UNKNOWN).any():
            return "mini-batch"
        return "step" if (self.chunk.step != UNKNOWN).any() else "log"


@dataclass(frozen=True, eq=False)
class Verdict:
    """What one objective did to the tokens of a stage.

    Attributes:
        stage: the tokens; fewer than the log's where there are too many scopes.
        objective: with its parameters.
        keep: (N,) tokens with a gradient; A = 0 counts as kept.
        weight: (N,) gradient weight w of A, 0 where dropped; penalties are left out.
    """

    stage: Stage
    objective: Objective
    keep: Bools
    weight: Floats


@dataclass(eq=False)
class WhatIf:
    """Verdicts by objective name, and why there is none for the others.

    Attributes:
        stage: the tokens, None where the log has no ratio.
        verdicts: name -> verdict.
        missing: name -> what it needs.
    """

    stage: Stage | None
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def stage_of(chunk: Chunk | None, ratio: str | None, complete: bool) -> Stage | None:
    """Choose the tokens that can be judged; None if there are none."""
    if chunk is None or ratio is None:
        return None
    d = chunk.log_ratio(ratio)
    if d is None:
        return None
    usable = np.isfinite(d)
    advantage = chunk.columns.get("advantage")
    if advantage is not None and np.isfinite(advantage[usable]).any():
        usable &= np.isfinite(advantage)
    else:
        advantage = None
    if not usable.any():
        return None
    if not usable.all():
        chunk, d = chunk.where(usable), d[usable]
        advantage = None if advantage is None else advantage[usable]
    return Stage(chunk, ratio, d, advantage, complete)


def parameters(name: str, options: Options) -> dict[str, Any]:
    """Parameters that follow the options; all others are the objective's defaults."""
    if name == "ppo":
        return {"eps_low": options.clip_low, "eps_high": options.clip_high}
    return {"budget": options.budget} if name in M2PO else {}


def what_if(stage: Stage | None, options: Options) -> WhatIf:
    """Apply every objective to the tokens of a stage."""
    found = WhatIf(stage)
    stages: dict[str, Stage] = {}
    for name, spec in OBJECTIVES.items():
        if stage is None:
            found.missing[name] = "two log-prob columns of the same tokens"
            continue
        try:
            some = stages.setdefault(spec.scope, stage.fewer(spec.scope))
            verdict = judge(some, objective(name, **parameters(name, options)))
        except ValueError as error:
            found.missing[name] = str(error)
            continue
        if verdict is None:
            found.missing[name] = "advantage"
        else:
            found.verdicts[name] = verdict
    return found


def judge(stage: Stage, rule: Objective) -> Verdict | None:
    """Apply one objective; without advantages only one that does not depend on them, else None.

    Raises:
        ValueError: the log lacks a column that the objective needs.
    """
    if stage.advantage is not None:
        return _judge(stage, rule, stage.advantage)
    good = _judge(stage, rule, np.ones_like(stage.d))
    bad = _judge(stage, rule, -np.ones_like(stage.d))
    same = np.array_equal(good.keep, bad.keep) and np.array_equal(good.weight, bad.weight)
    return good if same else None


def _needs(stage: Stage, missing: tuple[str, ...]) -> str:
    """Name the columns of the log that are absent: where two log-probs stand in, the third."""
    third = next(n for n in LOGP_FIELDS if n not in RATIOS[stage.ratio])
    absent = third if third not in stage.chunk.columns else "proximal_logp"
    return ", ".join(absent if name == "proximal_logp" else name for name in missing)


def _judge(stage: Stage, rule: Objective, advantage: Floats) -> Verdict:
    keep, weight = [], []
    for rows in stage.cuts(rule.scope):
        batch = stage.batch(rows, advantage)
        missing = tuple(n for n in rule.missing(batch) if n != "probabilities")
        if missing:
            raise ValueError(_needs(stage, missing))
        kept, w = rule.judge(batch)
        keep.append(np.asarray(kept, dtype=np.bool_))
        weight.append(np.asarray(w, dtype=np.float64))
    return Verdict(stage, rule, np.concatenate(keep), np.concatenate(weight))
