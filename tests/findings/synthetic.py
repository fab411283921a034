"""Logs sampled from real softmaxes, so that E[r] = 1 holds and drift looks as drift does.

Every token has its own context (a vector of logits). The trainer's policy is their softmax; the
engine adds noise to them, an older version differs by a random walk; the token is drawn from what
the engine has. `Columns` can be tampered with before it becomes a batch.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

from m2po_lab.analysis import Analysis
from m2po_lab.analysis.options import Options
from m2po_lab.analysis.scan import scan
from m2po_lab.core.batch import TokenBatch
from m2po_lab.findings import Finding, evaluate
from m2po_lab.logs.rows import Rows

GRIDS: dict[str, Any] = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}


@dataclass(frozen=True)
class Run:
    """How a log comes about.

    Args:
        rows: responses; a multiple of `group`.
        length: mean tokens of a response.
        vocabulary: size of a context's softmax.
        sharpness: standard deviation of the logits; 8 makes most tokens certain.
        steps: rows are dealt out over so many.
        lags: each row draws one of these.
        engine: standard deviation of the engine's logit noise.
        walk: standard deviation of the logits' change in one version.
        update: the same between proximal and current policy.
        temperature: of sampling; both sides divide by it.
        advantage: "group", "zero" or None.
        versions, entropy, proximal, ids: whether the log has them.
        grid: number format of the logged log-probs.
        group: rows that share a prompt.
        masked: share of rows' tokens before the response that the mask leaves out.
    """

    rows: int = 64
    length: int = 40
    vocabulary: int = 24
    sharpness: float = 2.0
    steps: int = 4
    lags: tuple[int, ...] = (0,)
    engine: float = 0.003
    walk: float = 0.0
    update: float = 0.01
    temperature: float = 1.0
    advantage: str | None = "group"
    versions: bool = True
    entropy: bool = True
    proximal: bool = True
    ids: bool = True
    grid: str = "float32"
    group: int = 4
    masked: float = 0.0


@dataclass
class Columns:
    """Arrays of a log before they become a batch: flat per token, or one entry a row."""

    lengths: np.ndarray
    behavior: np.ndarray
    proximal: np.ndarray | None
    current: np.ndarray
    keep: np.ndarray
    advantage: np.ndarray | None
    entropy: np.ndarray | None
    version: np.ndarray | None
    step: np.ndarray
    train_version: np.ndarray | None
    row_id: list[str] | None
    group_id: list[str] | None
    prompt_key: np.ndarray | None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def row(self) -> np.ndarray:
        """Row of each token."""
        return np.repeat(np.arange(self.lengths.size), self.lengths)

    @property
    def position(self) -> np.ndarray:
        """Position of each token."""
        starts = np.cumsum(self.lengths) - self.lengths
        return np.arange(self.row.size) - starts[self.row]

    def with_(self, **changes: Any) -> "Columns":
        """A copy with some columns changed."""
        return replace(self, **changes)

    def batch(self) -> TokenBatch:
        """The log as one batch."""
        rows = Rows(
            source=["log.jsonl"] * self.lengths.size,
            line=np.arange(1, self.lengths.size + 1),
            row_id=self.row_id,
            group_id=self.group_id,
            step=self.step,
            train_version=self.train_version,
            prompt_key=self.prompt_key,
            has_mask=True,
            **self.facts,
        )
        return TokenBatch(
            behavior_logp=self.behavior,
            proximal_logp=self.proximal,
            current_logp=self.current,
            advantage=self.advantage,
            keep=self.keep,
            entropy=self.entropy,
            version=self.version,
            lengths=self.lengths,
            rows=rows,
        )


def log_softmax(logits: np.ndarray) -> np.ndarray:
    top = logits.max(axis=1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))


def draw(rng: np.random.Generator, logp: np.ndarray) -> np.ndarray:
    """One token a context, by the Gumbel trick."""
    return np.argmax(logp + rng.gumbel(size=logp.shape), axis=1)


def make(seed: int, run: Run | None = None, **changes: Any) -> Columns:
    """Sample a log."""
    run = replace(run or Run(), **changes)
    rng = np.random.default_rng(seed)
    lengths = np.maximum(rng.poisson(run.length, run.rows), 3)
    row, n = np.repeat(np.arange(run.rows), lengths), int(lengths.sum())
    step = np.arange(run.rows) * run.steps // run.rows
    trained = 100 + step
    lag = rng.choice(run.lags, run.rows)
    z = rng.normal(0, run.sharpness, (n, run.vocabulary))
    old = z + rng.normal(size=z.shape) * run.walk * np.sqrt(lag[row])[:, None]
    engine = log_softmax((old + rng.normal(size=z.shape) * run.engine) / run.temperature)
    token = draw(rng, engine)
    proximal = log_softmax(z / run.temperature)
    current = log_softmax((z + rng.normal(size=z.shape) * run.update) / run.temperature)
    at = np.arange(n)

    def logged(logp: np.ndarray) -> np.ndarray:
        return logp[at, token].astype(GRIDS[run.grid]).astype(np.float64)

    advantage = None
    if run.advantage is not None:
        reward = rng.integers(0, 2, run.rows).astype(float).reshape(-1, run.group)
        centred = (reward - reward.mean(axis=1, keepdims=True)).reshape(-1)
        advantage = centred[row] if run.advantage == "group" else np.zeros(n)
    starts = np.cumsum(lengths) - lengths
    keep = (at - starts[row]) >= np.floor(run.masked * lengths)[row]
    return Columns(
        lengths=lengths,
        behavior=logged(engine),
        proximal=logged(proximal) if run.proximal else None,
        current=logged(current),
        keep=keep,
        advantage=advantage,
        entropy=-(np.exp(engine) * engine).sum(axis=1) if run.entropy else None,
        version=(trained - lag)[row] if run.versions else None,
        step=step,
        train_version=trained if run.versions else None,
        row_id=[f"row{i}" for i in range(run.rows)] if run.ids else None,
        group_id=[f"group{i // run.group}" for i in range(run.rows)] if run.ids else None,
        prompt_key=(np.arange(run.rows) // run.group + 1).astype(np.uint64),
    )


def analyzed(columns: Columns, **options: Any) -> Analysis:
    """Scan a log."""
    return scan([columns.batch()], Options(**options))


def found(columns: Columns, **options: Any) -> dict[str, Finding]:
    """Findings of a log by id; of several with one id the last."""
    return {finding.id: finding for finding in evaluate(analyzed(columns, **options))}


def loud(columns: Columns) -> dict[str, Finding]:
    """Its errors and warnings."""
    return {name: f for name, f in found(columns).items() if f.severity != "info"}


def copied(columns: Columns, name: str) -> np.ndarray:
    """A copy of one column, to be tampered with."""
    return np.array(getattr(columns, name))
