"""One set: its published rows judged one by one, and the rows that stay."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from full_scale.data.layouts import Messages, needs_an_image, problem_of
from full_scale.data.lengths import TOKENS, Lengths
from full_scale.data.rows import INSTRUCTION, PART, bare, key, prompt
from full_scale.data.sets import SETS, TRAIN, DataSet
from full_scale.reward import compute_scores

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
    length: int
    key: str


class Oddity(NamedTuple):
    """What is odd about a row, and whether the row goes because of it."""

    reason: str
    leaves: bool


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
    entries, read = _complete(chosen, published, settings, lengths, out)
    stay = []
    for entry, odd in zip(
        entries, _oddities(chosen, entries, settings, lengths, elsewhere), strict=True
    ):
        reason = next((each.reason for each in odd if each.leaves), None)
        if reason is not None:
            out.add(reason, entry.place)
            continue
        stay.append(entry)
        for each in odd:
            kept.add(each.reason, entry.place)
    report = {
        "read": read,
        "left_out": out.report(),
        "kept_although": kept.report(),
        "prompt_length": _lengths(stay, lengths.unit),
        "remarks": _remarks(chosen, read, stay, settings, lengths),
    }
    return pa.Table.from_pylist([_row(chosen, entry) for entry in stay], schema=PART), report


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
    lengths: Lengths,
    out: Tally,
) -> tuple[list[Entry], int]:
    """Rows that have a question and an answer, and the number of all."""
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
            complete.append((place, index, problem, problem.answer))
    questions = iter(bare([problem.question for _, _, problem, _ in complete if problem.messages]))
    entries = []
    for place, index, problem, answer in complete:
        messages = prompt(problem, settings.instruction)
        question = next(questions) if problem.messages else problem.question
        length = lengths(messages)
        entries.append(Entry(place, index, question, answer, messages, length, key(question)))
    return entries, read


def _oddities(
    chosen: DataSet,
    entries: Sequence[Entry],
    settings: Settings,
    lengths: Lengths,
    elsewhere: Mapping[str, str],
) -> Iterator[list[Oddity]]:
    """What is odd about each entry, the graver first."""
    trains = chosen.split == TRAIN
    # A file that repeats every problem alike is a repeated set, not one with duplicates.
    repeats = len(set(Counter(entry.key for entry in entries).values())) == 1
    disputed = _disputed(entries)
    seen: set[str] = set()
    for entry in entries:
        odd = []
        if other := elsewhere.get(entry.key):
            wanted = settings.keep_overlap and SETS[other].split != TRAIN
            odd.append(Oddity(f"also in {other}", trains and not wanted))
        if entry.key in disputed:
            odd.append(Oddity("duplicate with another answer", trains))
        elif entry.key in seen:
            odd.append(Oddity("duplicate", trains or repeats))
        if entry.length > settings.max_prompt:
            # Bytes only bound the tokens: such a prompt may well fit.
            counted = lengths.unit == TOKENS
            reason = f"prompt above {settings.max_prompt} {lengths.unit}"
            odd.append(Oddity(reason, trains and counted))
        seen.add(entry.key)
        yield odd


def _disputed(entries: Sequence[Entry]) -> set[str]:
    """Keys of questions whose copies have answers that the reward does not take as equal."""
    answers: defaultdict[str, list[str]] = defaultdict(list)
    for entry in entries:
        if entry.answer not in answers[entry.key]:
            answers[entry.key].append(entry.answer)
    pairs = [(key, found[0], other) for key, found in answers.items() for other in found[1:]]
    scores = compute_scores(
        [""] * len(pairs),
        [rf"\boxed{{{other}}}" for _, _, other in pairs],
        [first for _, first, _ in pairs],
    )
    return {key for (key, _, _), score in zip(pairs, scores, strict=True) if not score["acc"]}


def _lengths(entries: Sequence[Entry], unit: str) -> dict[str, Any] | None:
    if not entries:
        return None
    values = [entry.length for entry in entries]
    return {"unit": unit, "mean": round(sum(values) / len(values), 1), "max": max(values)}


def _remarks(
    chosen: DataSet, read: int, entries: Sequence[Entry], settings: Settings, lengths: Lengths
) -> list[str]:
    remarks = []
    if read != chosen.rows:
        remarks.append(f"{read} rows were read, {chosen.rows} are published")
    silent = sum(BOX not in entry.messages[-1]["content"] for entry in entries)
    if silent:
        remarks.append(f"{silent} prompts do not ask for \\boxed{{}}, which the reward looks for")
    if lengths.unit != TOKENS and any(entry.length > settings.max_prompt for entry in entries):
        remarks.append("prompts were measured in bytes, an upper bound; --tokenizer counts tokens")
    return remarks
