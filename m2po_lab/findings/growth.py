"""Does drift grow with the step although the lag stays the same?"""

from dataclasses import dataclass
from typing import Any

from m2po_lab.findings.view import Cell, View, rank_correlation
from m2po_lab.logs.rows import UNKNOWN

WARM_UP = "a learning rate that warms up to the end of the log looks the same."
SHOWN = 50
"""Steps of a series that the evidence lists."""


@dataclass(frozen=True)
class Growth:
    """M2 over the steps of a log, at one lag.

    Args:
        steps: those with a token, ascending; the trainer's version where the log names no step.
        series: M2 of each.
        early, late: the first and the last third of them.
    """

    steps: list[int]
    series: list[float]
    early: Cell
    late: Cell

    def words(self) -> str:
        """What was seen."""
        return (
            f"grows from {self.early.m2:.2g} to {self.late.m2:.2g} over steps {self.steps[0]} to "
            f"{self.steps[-1]}"
        )

    def evidence(self) -> dict[str, Any]:
        """For a finding."""
        pairs = zip(self.steps, self.series, strict=True)
        return {
            "early": self.early.evidence(),
            "late": self.late.evidence(),
            "by_step": [{"step": step, "m2": m2} for step, m2 in pairs][:SHOWN],
        }


def growth(view: View, ratio: str, lag: int, *, honest: bool) -> Growth | None:
    """Return the growth of M2 with the step at one lag (UNKNOWN: where none is known), if any.

    Over `sync_steps` or more the rank correlation is `sync_rank`, and the last third lies
    `sync_growth` times above the first, with separate intervals, above `floor_m2`.

    Args:
        view: the log.
        ratio: which log-ratio.
        lag: of the tokens.
        honest: drift between versions is to be expected, so that its growth proves less: then the
            trend must be `trend_rank`, reach `drift_m2`, and still go on in the last third, which
            it does not once a learning rate has warmed up.
    """
    limits = view.limits

    def at(step: int, trained: int) -> int:
        return trained if step == UNKNOWN else step

    keys = view.evidence.cells.get(ratio, {})
    steps = sorted({at(s, t) for s, t, g in keys if g == lag and at(s, t) != UNKNOWN})
    if len(steps) < limits["sync_steps"]:
        return None

    def pool(low: int, high: int) -> Cell:
        return view.pool(ratio, lambda s, t, g: g == lag and low <= at(s, t) <= high)

    part = max(len(steps) // 3, 1)
    series = [pool(step, step).m2 for step in steps]
    early, late = pool(steps[0], steps[part - 1]), pool(steps[-part], steps[-1])
    middle = pool(steps[part], steps[-part - 1])
    least = limits["drift_m2" if honest else "floor_m2"]
    rank = limits["trend_rank" if honest else "sync_rank"]
    grown = late.low > max(limits["sync_growth"] * early.m2, early.high, least)
    goes_on = late.low > middle.m2 and late.m2 > GOES_ON * middle.m2
    if not (view.enough(early) and view.enough(late) and grown):
        return None
    if rank_correlation(series) < rank or (honest and not goes_on):
        return None
    return Growth(steps, series, early, late)


GOES_ON = 1.3
"""Last third over the one before: a random walk that never ends gives 5/3, a plateau 1."""
