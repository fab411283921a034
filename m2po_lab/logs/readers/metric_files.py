"""Metric files: numbers a step and no tokens, from verl, TRL, tinker or any trainer.

verl: {"step": N, "data": {...}} a line (verl/utils/tracking.py), or an array of {"step": N, ...};
TRL: trainer_state.json with "log_history", or that array alone; tinker-cookbook: metrics.jsonl.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs import jsontext, values
from m2po_lab.logs.jsonlines import is_rollout
from m2po_lab.logs.metrics import MetricSeries
from m2po_lab.logs.reader import Notes, OneByOne, ReadOptions
from m2po_lab.logs.rows import UNKNOWN
from m2po_lab.logs.source import Source

_STEPS = ("step", "global_step", "training/global_step", "_step", "rollout/step", "train/step")
_ENOUGH = 3
_STATE = "trainer_state.json"
_MARKS = {
    "verl-metrics": ("actor/", "critic/", "rollout_corr/", "global_seqlen/"),
    "trl-metrics": ("completions/", "train_runtime", "frac_reward_zero_std", "learning_rate"),
    "tinker-metrics": ("progress/batch", "env/all/", "optim/kl_sample_train"),
}
"""Framework -> starts of its metrics' names."""

Entry = tuple[int, Mapping[str, Any]]


class MetricFile(OneByOne):
    """Fills `Notes.metrics`; yields no tokens."""

    name = "metrics"

    def sniff(self, source: Source) -> bool:
        """Objects with a step and several numbers, none of them a rollout."""
        start = jsontext.looks_like_json(source)
        if not start:
            return False
        first: Any = jsontext.first_object(source) if start == b"{" else None
        if not first:
            entries = _entries_of(jsontext.whole(source))
            found = [item for _, item in entries[:2]]
        elif "log_history" in first:
            return True
        else:
            found = [_flat(first)] * (1 + (b"\n{" in source.head))
        return bool(found) and _looks_like_metrics(found[0]) and _is_series(found)

    def arrange(self, sources: Sequence[Source], notes: Notes) -> list[tuple[Source, ...]]:
        """Every file alone; of checkpoints' states, which hold the history so far, the last."""
        states = [source for source in sources if source.name == _STATE]
        if len(states) > 1:
            notes.remark(f"of {len(states)} {_STATE} files the last one is read")
        return [(s,) for s in sources if s.name != _STATE or s is states[-1]]

    def read(
        self, sources: tuple[Source, ...], options: ReadOptions, notes: Notes
    ) -> Iterator[TokenBatch]:
        """Collect the series of one file."""
        (source,) = sources
        series: dict[str, list[tuple[int, float]]] = {}
        for step, item in _entries(source, options, notes):
            for name, value in item.items():
                if name not in _STEPS and _is_number(value):
                    series.setdefault(name, []).append((step, values.real(value)))
        framework = _framework(series)
        for name, points in series.items():
            steps = np.array([step for step, _ in points], dtype=np.int64)
            numbers = np.array([value for _, value in points], dtype=np.float64)
            notes.metrics.append(MetricSeries(name, source.address, steps, numbers, framework))
        yield from ()


def _is_number(value: Any) -> bool:
    """A number, or null in place of one."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_series(items: Sequence[Mapping[str, Any]]) -> bool:
    """Entries with a step, or several of them: a lone object without one is a configuration."""
    return len(items) > 1 or not set(_STEPS).isdisjoint(items[0])


def _flat(item: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics of one entry; those under `data` or `metrics` are lifted up."""
    inner = next((item[k] for k in ("data", "metrics") if isinstance(item.get(k), dict)), None)
    return dict(item) if inner is None else {**item, **inner}


def _looks_like_metrics(item: Mapping[str, Any]) -> bool:
    """Several numbers, and mostly numbers."""
    numeric = sum(_is_number(value) for value in item.values())
    return numeric >= _ENOUGH and 2 * numeric > len(item) and not is_rollout(item)


def _entries(source: Source, options: ReadOptions, notes: Notes) -> Iterator[Entry]:
    """Numbered entries of a file of lines, or of one JSON value."""
    if jsontext.looks_like_json(source) == b"{" and jsontext.first_object(source):
        lines = (item for _, item in jsontext.objects(source, options, notes))
        for i, item in enumerate(lines):
            yield from _entries_of([item], i) if "log_history" not in item else _entries_of(item)
    else:
        yield from _entries_of(jsontext.whole(source))


def _entries_of(value: Any, first: int = 0) -> list[Entry]:
    """Entries of an array, or of an object that holds one under `log_history`.

    An entry without a step takes its number in the file.
    """
    if isinstance(value, dict):
        value = value.get("log_history", [value])
    found: list[Entry] = []
    for i, item in enumerate(value if isinstance(value, list) else []):
        if isinstance(item, dict):
            flat = _flat(item)
            step = next((values.integer(flat[k]) for k in _STEPS if k in flat), UNKNOWN)
            found.append((step if step != UNKNOWN else first + i, flat))
    return found


def _framework(series: Mapping[str, Any]) -> str:
    """The framework with the most names in the file."""
    counts = {f: sum(n.startswith(marks) for n in series) for f, marks in _MARKS.items()}
    best = max(counts, key=lambda f: counts[f])
    return best if counts[best] else "metrics"
