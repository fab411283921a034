"""Notebook 06: the real TRL run that ships with the package, and what its answers read."""

import math
from collections import Counter
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2po_lab.core import TokenBatch
from m2po_lab.logs import open_log
from m2po_lab.report.figure_data import steps

TEXT = MappingProxyType(
    {**{15 + i: str(i) for i in range(10)}, 13: ".", 220: " ", 488: " +", 284: " =", 151645: ""}
)
"""Token ids of Qwen2.5 that occur in the answers; the last one ends an answer."""
QUESTIONS = MappingProxyType(
    {
        0: ("15 + 36", "63 + 94"),
        4: ("89 + 28", "35 + 48"),
        8: ("24 + 71", "96 + 76"),
        12: ("47 + 57", "81 + 98"),
    }
)
"""Weight version that sampled -> the two questions of that batch, eight answers each."""


def shipped(name: str) -> Path:
    """Path of a file in `m2po_lab.data`."""
    return Path(str(files("m2po_lab.data") / name))


LOG, METRICS = shipped("trl_grpo_bf16.jsonl"), shipped("trl_metrics.json")


@dataclass(frozen=True)
class Token:
    """One token of the log, as one trainer version scored it.

    Attributes:
        row: number of its answer, in the order they were sampled in.
        question: what was asked.
        step: trainer version.
        sampled_by: weight version that sampled it.
        position: in the answer.
        text: what it reads.
        log_ratio: d, nats.
        behavior: its probability under the policy that sampled it.
        advantage: of its answer.
    """

    row: int
    question: str
    step: int
    sampled_by: int
    position: int
    text: str
    log_ratio: float
    behavior: float
    advantage: float


def tokens(path: Path = LOG) -> list[Token]:
    """Every token of a log of this run."""
    return [token for batch in open_log(path) for token in _tokens(batch)]


def _tokens(batch: TokenBatch) -> list[Token]:
    row_of, position = (np.asarray(a) for a in batch.row_and_position)
    d, behavior = np.asarray(batch.log_ratio()), np.exp(np.asarray(batch.behavior_logp))
    version, advantage = np.asarray(batch.version), np.asarray(batch.advantage)
    found = []
    for i in np.flatnonzero(np.asarray(batch.keep)):
        row = int(batch.rows.row_id[row_of[i]].split("row")[1])
        token = Token(
            row=row,
            question=QUESTIONS[int(version[i])][row % 16 // 8],
            step=int(batch.rows.step[row_of[i]]),
            sampled_by=int(version[i]),
            position=int(position[i]),
            text=TEXT[int(batch.rows.token_ids[i])],
            log_ratio=float(d[i]),
            behavior=float(behavior[i]),
            advantage=float(advantage[i]),
        )
        found.append(token)
    return found


@dataclass(frozen=True)
class Answer:
    """One answer of the run.

    Attributes:
        sampled_by: weight version.
        question: the sum that was asked for.
        text: what the model wrote.
        right: whether that is the sum and nothing else.
        advantage: what training gave it.
    """

    sampled_by: int
    question: str
    text: str
    right: bool
    advantage: float


def answers(found: list[Token]) -> list[Answer]:
    """Put the tokens of each answer together again, in the order they were sampled in."""
    of_row: dict[int, dict[int, Token]] = {}
    for token in found:
        of_row.setdefault(token.row, {})[token.position] = token
    result = []
    for _, by_position in sorted(of_row.items()):
        first = by_position[0]
        text = "".join(by_position[p].text for p in sorted(by_position))
        right = text == str(sum(map(int, first.question.split(" + "))))
        result.append(Answer(first.sampled_by, first.question, text, right, first.advantage))
    return result


def by_question(given: list[Answer]) -> dict[tuple[int, str], list[tuple[Answer, int]]]:
    """(Batch, question) -> its different answers, each with how often it was given."""
    counts: dict[tuple[int, str], Counter[Answer]] = {}
    for answer in given:
        counts.setdefault((answer.sampled_by, answer.question), Counter())[answer] += 1
    return {asked: counter.most_common() for asked, counter in counts.items()}


def begins_with(found: list[Token], question: str, text: str) -> dict[int, float]:
    """Step -> probability that the policy of that step begins an answer to a question so."""
    return {
        token.step: token.behavior * math.exp(token.log_ratio)
        for token in sorted(found, key=lambda token: token.step)
        if (token.question, token.position, token.text) == (question, 0, text)
    }


def curves(report: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Columns by step: step, m2, ess_fraction, k1, and reward where it was logged (else NaN)."""
    rows = steps(report)
    names = ("step", "m2", "ess_fraction", "k1", "reward")
    return {
        name: np.array([np.nan if (v := row.get(name)) is None else v for row in rows], np.float64)
        for name in names
    }
