"""Settings of a scan; they are the command's flags and are kept in the result."""

import math
from dataclasses import dataclass

GROUPINGS = ("step", "lag", "position")
"""What `--by` may name."""
EPS_GRID = (0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.28, 0.3, 0.4, 0.5, 0.8, 1.0, 2.0, 4.0)
BUDGET_GRID = (0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a scan computes; two analyses merge only if these are equal.

    Attributes:
        budget: tau of M2PO, in nats^2.
        clip_low: lower clip range eps of the PPO what-if; the ratio is clipped at 1 - clip_low.
        clip_high: upper clip range; clipped at 1 + clip_high.
        by: which of `GROUPINGS` to tabulate.
        eps_grid: clip ranges of the clip sweep.
        budget_grid: budgets of the budget sweep, in nats^2.
        worst: how many of the largest |d| to list token by token.
        reach_clipped: share of active tokens a clip may drop before the data counts as too stale.
        reach_ess: ESS fraction below which it does.
        reach_masked: share of active tokens M2PO may mask before it does.
    """

    budget: float = 0.04
    clip_low: float = 0.2
    clip_high: float = 0.2
    by: tuple[str, ...] = GROUPINGS
    eps_grid: tuple[float, ...] = EPS_GRID
    budget_grid: tuple[float, ...] = BUDGET_GRID
    worst: int = 20
    reach_clipped: float = 0.01
    reach_ess: float = 0.5
    reach_masked: float = 0.05

    def __post_init__(self) -> None:
        """Refuse values that no statistic can be computed for."""
        for name in ("budget", "clip_low", "clip_high"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name}={value}: give a finite number that is not negative")
        if self.clip_low > 1:
            raise ValueError(f"clip_low={self.clip_low}: give at most 1, a ratio is never below 0")
        unknown = [name for name in self.by if name not in GROUPINGS]
        if unknown:
            raise ValueError(f"by={unknown[0]!r}: choose from {', '.join(GROUPINGS)}")
        if self.worst < 0:
            raise ValueError(f"worst={self.worst}: give a number of tokens that is not negative")
