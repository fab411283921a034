"""martingale's token ledger (`tokens.db`): sampled tokens, and their scores by trainer revisions.

Tables: llm_revisions(digest, step), sequences(digest, record_json), scores(sequence_digest,
position, train_revision_digest, record_json). Log-probs are `logprob_bits`: "f32:" and big-endian
hex digits.
"""

import sqlite3
import struct
from collections.abc import Iterator
from typing import Any, ClassVar

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs import jsontext
from m2po_lab.logs.batching import NumberedRow, batches
from m2po_lab.logs.reader import Notes, OneByOne, ReadOptions
from m2po_lab.logs.readers.base import Columns
from m2po_lab.logs.source import Source
from m2po_lab.logs.sqlite import is_sqlite, opened, table_with

_MISSING = "the ledger has no scores: call its trainer hook after every update"


class Martingale(OneByOne):
    """One row a (sequence, trainer revision); without a score the sampler's side only."""

    name = "martingale"
    own: ClassVar[Columns] = {"advantage": ("advantage_or_reward",), "reward": ()}

    def sniff(self, source: Source) -> bool:
        """An SQLite file with the ledger's tables."""
        return is_sqlite(source) and "scores" in table_with(
            source, "sequence_digest", "position", "train_revision_digest", "record_json"
        )

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Read one ledger, read-only and immutable."""
        (source,) = sources
        with opened(source) as database:
            rows = _rows(database)
            yield from batches(rows, source, options, notes, self.own, _MISSING)


def _rows(database: sqlite3.Connection) -> Iterator[NumberedRow]:
    """Sequences in order, each once a trainer revision that scored it."""
    steps = dict(database.execute("SELECT digest, step FROM llm_revisions"))
    query = "SELECT digest, record_json FROM sequences ORDER BY actor_id, sequence_index"
    number = 0
    for digest, text in database.execute(query):
        record = jsontext.parse(text.encode())
        base = _sequence(record, steps)
        n = len(base["token_ids"])
        scores = _scores(database, (digest, record.get("terminal_digest") or digest))
        if not scores:
            number += 1
            yield number, base
        for revision in sorted(scores, key=lambda r: steps.get(r, 0)):
            number += 1
            given = scores[revision]
            scored = [given.get(i) for i in range(n)]
            yield (
                number,
                {**base, "trainer_log_probs": scored, "trainer_version": steps.get(revision)},
            )


def _sequence(record: dict[str, Any], steps: dict[str, int]) -> dict[str, Any]:
    """The sampler's side of one sequence."""
    tokens = record.get("tokens") or []
    return {
        "sequence_id": record.get("sequence_id"),
        "prompt_ids": record.get("prompt_ids"),
        "token_ids": [token["token_id"] for token in tokens],
        "rollout_log_probs": [_float(token.get("logprob_bits")) for token in tokens],
        "versions": [steps.get(token.get("revision_digest"), -1) for token in tokens],
        "advantage_or_reward": _float(record.get("reward_bits")),
    }


def _scores(
    database: sqlite3.Connection, digests: tuple[str, str]
) -> dict[str, dict[int, float | None]]:
    """Trainer revision -> position -> log-prob, for the scores of one sequence."""
    found: dict[str, dict[int, float | None]] = {}
    query = (
        "SELECT position, train_revision_digest, record_json FROM scores "
        "WHERE sequence_digest IN (?, ?) ORDER BY position"
    )
    for position, revision, text in database.execute(query, digests):
        bits = jsontext.parse(text.encode()).get("logprob_bits")
        found.setdefault(revision, {})[int(position)] = _float(bits)
    return found


def _float(bits: Any) -> float | None:
    """The number behind "f32:" or "f64:" and its big-endian hex digits; None if it is none."""
    if not isinstance(bits, str):
        return None
    kind, _, digits = bits.partition(":")
    try:
        return float(struct.unpack({"f32": ">f", "f64": ">d"}[kind], bytes.fromhex(digits))[0])
    except (KeyError, ValueError, struct.error):
        return None
