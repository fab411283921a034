"""One set: its published rows judged one by one, and the rows that stay."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from full_scale.data.layouts import Messages, needs_an_image, problem_of
from full_scale.data.lengths import Lengths
from full_scale.data.rows import INSTRUCTION, PART, bare, key, prompt
from full_scale.data.sets import TRAIN, DataSet

SHOWN = 5
"""Places of rows that are named for each reason."""
BOX = r"\boxed"


@dataclass(frozen=True)
class Settings:
    """How rows are made.

    Attributes:
        instruction: sentence behind every question, or a text with {question} in it.
        max_prompt: longest prompt, tokens.
        tokenizer: hub id or folder of the tokenizer that counts them; None counts bytes.
        keep_overlap: whether training keeps problems of the evaluation sets.
        repeat: set -> copies of each row in test.parquet, where it is not the set's own number.
    """

    instruction: str = INSTRUCTION
    max_prompt: int = 1536
    tokenizer: str | None = None
    keep_overlap: bool = False
    repeat: Mapping[str, int] = field(default_factory=dict)


class Tally:
    """Rows by reason, the first few with their place."""

    def __init__(self) -> None:
        """Start without any."""
        self._places: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, reason: str, place: str) -> None:
        """Count a row."""
        self._places[reason].append(place)

    def report(self) -> dict[str, Any]:
        """For the manifest: reason -> number of rows and the first places."""
        return {
            reason: {"rows": len(places), "first": places[:SHOWN]}
            for reason, places in sorted(self._places.items())
        }


@dataclass(frozen=True)
class Entry:
    """A problem that is complete, with where it stood in the files."""

    place: str
    index: int
    question: str
    answer: str
    messages: Messages
    key: str


def build(
    chosen: DataSet,
    published: Iterable[tuple[str, Mapping[str, Any]]],
    settings: Settings,
    lengths: Lengths,
    elsewhere: Mapping[str, str],
) -> tuple[pa.Table, dict[str, Any]]:
    """Make the rows of one set.

    An evaluation set stays as it was published, but for rows that cannot be scored; what is odd
    about it is reported. A training set loses duplicates, long prompts and evaluation problems.

    Args:
        chosen: the set.
        published: places and rows of its files.
        settings: how rows are made.
        lengths: measures prompts.
        elsewhere: keys of problems that training is not to see -> the set that they are in.

    Returns:
        Table of `PART`, and counts for the manifest.
    """
    out, kept = Tally(), Tally()
    entries, read = _complete(chosen, published, settings, out)
    odd = _oddities(entries, elsewhere, settings, lengths)
    # A file that repeats every problem alike is a repeated set, not one with duplicates.
    repeated = len(set(Counter(entry.key for entry in entries).values())) == 1
    rows = []
    for entry in entries:
        reasons = odd.get(entry.place, ())
        for reason in reasons:
            leaves = _leaves(reason, chosen, settings, repeated)
            (out if leaves else kept).add(reason, entry.place)
            if leaves:
                break
        else:
            rows.append(_row(chosen, entry))
    report = {
        "read": read,
        "left_out": out.report(),
        "kept_although": kept.report(),
        "prompt_length": _lengths([lengths(entry["prompt"]) for entry in rows], lengths.unit),
        "remarks": _remarks(chosen, read, rows, settings, lengths),
    }
    return pa.Table.from_pylist(rows, schema=PART), report


def _row(chosen: DataSet, entry: Entry) -> dict[str, Any]:
    return {
        "data_source": chosen.hub_id,
        "prompt": entry.messages,
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": entry.answer},
        "extra_info": {"split": chosen.split, "index": entry.index},
        "question": entry.question,
    }


def _complete(
    chosen: DataSet,
    published: Iterable[tuple[str, Mapping[str, Any]]],
    settings: Settings,
    out: Tally,
) -> tuple[list[Entry], int]:
    complete, read = [], 0
    for index, (place, published_row) in enumerate(published):
        read += 1
        problem = problem_of(published_row, integer=chosen.integer)
        if problem is None:
            out.add("no question", place)
        elif problem.answer is None:
            out.add("no answer", place)
        elif needs_an_image(published_row):
            out.add("needs an image", place)
        else:
            complete.append((place, index, problem))
    ready = [problem.question for _, _, problem in complete if problem.messages]
    questions = iter(bare(ready))
    entries = []
    for place, index, problem in complete:
        messages = prompt(problem, settings.instruction)
        question = next(questions) if problem.messages else problem.question
        entries.append(Entry(place, index, question, str(problem.answer), messages, key(question)))
    return entries, read


def _oddities(
    entries: list[Entry], elsewhere: Mapping[str, str], settings: Settings, lengths: Lengths
) -> dict[str, list[str]]:
    """Place -> what is odd about the row, the graver first."""
    answers = defaultdict(set)
    for entry in entries:
        answers[entry.key].add(entry.answer)
    odd: defaultdict[str, list[str]] = defaultdict(list)
    seen: set[str] = set()
    for entry in entries:
        reasons = odd[entry.place]
        if entry.key in elsewhere:
            reasons.append(f"also in {elsewhere[entry.key]}")
        if len(answers[entry.key]) > 1:
            reasons.append("duplicate with another answer")
        elif entry.key in seen:
            reasons.append("duplicate")
        seen.add(entry.key)
        if lengths(entry.messages) > settings.max_prompt:
            reasons.append(_too_long(settings, lengths))
    return odd


def _too_long(settings: Settings, lengths: Lengths) -> str:
    return f"prompt above {settings.max_prompt} {lengths.unit}"


def _leaves(reason: str, chosen: DataSet, settings: Settings, repeated: bool) -> bool:
    """Whether a row goes for a reason."""
    if chosen.split != TRAIN:
        return reason == "duplicate" and repeated
    if reason.startswith("also in"):
        return not settings.keep_overlap
    # Bytes only bound the tokens: such a prompt may well fit.
    return not reason.endswith("bytes")


def _lengths(values: list[int], unit: str) -> dict[str, Any] | None:
    if not values:
        return None
    return {"unit": unit, "mean": round(sum(values) / len(values), 1), "max": max(values)}


def _remarks(
    chosen: DataSet, read: int, rows: list[dict[str, Any]], settings: Settings, lengths: Lengths
) -> list[str]:
    remarks = []
    if read != chosen.rows:
        remarks.append(f"{read} rows were read, {chosen.rows} are published")
    silent = sum(BOX not in entry["prompt"][-1]["content"] for entry in rows)
    if silent:
        remarks.append(f"{silent} prompts do not ask for \\boxed{{}}, which the reward looks for")
    if lengths.unit == "bytes" and any(
        lengths(entry["prompt"]) > settings.max_prompt for entry in rows
    ):
        remarks.append("prompts were measured in bytes, an upper bound; --tokenizer counts tokens")
    return remarks
