"""The batches that are asked about: 20 reference cases and random heavy-tailed ones."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from m2po_lab.core.batch import TokenBatch

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Case:
    """One batch to ask about; arrays are (B, T) numpy in the dtype in which they are passed."""

    name: str
    current_logp: npt.NDArray[Any]
    behavior_logp: npt.NDArray[Any]
    proximal_logp: npt.NDArray[Any] | None
    advantage: npt.NDArray[Any]
    keep: Mask
    budget: float

    def batch(self, *, proximal: bool) -> TokenBatch:
        """The same as a TokenBatch, without proximal log-probs unless they are passed on."""
        return TokenBatch(
            current_logp=self.current_logp,
            behavior_logp=self.behavior_logp,
            proximal_logp=self.proximal_logp if proximal else None,
            advantage=self.advantage,
            keep=self.keep,
        )

    @property
    def log_ratio(self) -> npt.NDArray[np.float64]:
        """Log-ratio d in float64, 0 where not valid."""
        d = self.current_logp.astype(np.float64) - self.behavior_logp.astype(np.float64)
        return np.where(self.keep, d, 0.0)

    @property
    def countable(self) -> Mask:
        """Tokens whose gradient can show whether they are kept: valid, A not 0."""
        countable: Mask = self.keep & (self.advantage != 0)
        return countable


def reference_cases() -> Iterator[Case]:
    """The 20 selection cases, float32, behavior log-probs 0."""
    text = (files("m2po_lab.data") / "m2po_cases.json").read_text(encoding="utf-8")
    for case in json.loads(text)["cases"]:
        d = np.array(case["log_ratio"], dtype=np.float32)
        yield Case(
            name=f"case {case['name']}",
            current_logp=d,
            behavior_logp=np.zeros_like(d),
            proximal_logp=d.copy(),
            advantage=np.array(case["advantages"], dtype=np.float32),
            keep=np.array(case["mask"], dtype=bool),
            budget=float(case["tau"]),
        )


def random_cases(n: int, seed: int) -> Iterator[Case]:
    """Heavy-tailed batches, float64: Student-t log-ratios, ragged rows, both signs of A."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        shape = (int(rng.integers(2, 9)), int(rng.integers(3, 17)))
        lengths = rng.integers(1, shape[1] + 1, shape[0])
        keep = np.arange(shape[1])[None] < lengths[:, None]
        behavior = -np.abs(rng.normal(0, 1.5, shape)) - 0.01
        d = rng.standard_t(3, shape) * rng.choice([0.05, 0.15, 0.4])
        yield Case(
            name=f"random batch {i} (seed {seed})",
            current_logp=behavior + d,
            behavior_logp=behavior,
            proximal_logp=behavior + 0.7 * d + rng.normal(0, 0.02, shape),
            advantage=np.where(keep, rng.normal(0, 1, (shape[0], 1)), 0.0),
            keep=keep,
            budget=float(rng.choice([0.01, 0.04, 0.2])),
        )
