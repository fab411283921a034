"""Generations in the layouts that evaluation tools write -> samples of one form.

verl's validation dump (input, output, gts, score, step and what the reward returned), its Parquet
of generations (rows of the data with `responses`), lm-evaluation-harness' --log_samples, the
scripts of Qwen2.5-Math, our own (`full_scale.evaluation.generate`), and tables like them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from full_scale.data.answers import answer_text
from full_scale.data.files import rows, sources
from full_scale.data.layouts import columns
from full_scale.errors import UnusableError

SET = ("data_source", "dataset", "data_name", "benchmark", "task")
PROMPT = ("question", "problem", "prompt", "input", "doc")
INDEX = ("problem_id", "question_id", "doc_id", "unique_id", "idx", "index", "id")
RESPONSES = (
    "response",
    "responses",
    "output",
    "outputs",
    "completion",
    "completions",
    "generation",
    "generations",
    "resps",
    "code",
)
TRUTH = ("ground_truth", "gts", "gt", "target", "reward_model", "answer", "expected_answer")
SCORES = ("acc", "accuracy", "is_correct", "correct", "exact_match", "score", "scores", "reward")

RIGHT = 1.0
WRONG = (0.0, 0.1, -1.0)
"""Rewards of wrong answers: none, one that can be read, and that of other reward functions."""
NEAR = 1e-6
RESCORE = "--rescore lets the reward judge every response"


@dataclass(frozen=True)
class Sample:
    """One response to one problem.

    Attributes:
        place: file and row.
        dataset: what the row or the file says the set is; None if neither says it.
        problem: what all samples of a problem share: its text, else its number.
        prompt: the text that the model was given, if it is there.
        response: what it answered, if it is there.
        truth: the right answer, if it is there.
        right: whether it was scored as right; None if it was not scored.
        step: training step of the model, if the row says it.
    """

    place: str
    dataset: str | None
    problem: str
    prompt: str | None
    response: str | None
    truth: str | None
    right: bool | None
    step: int | None


def read(paths: Sequence[str], *, rescore: bool = False) -> Iterator[Sample]:
    """Read files, folders, globs and addresses.

    Args:
        paths: where they are.
        rescore: whether scores in them are left aside.

    Raises:
        UnusableError: a row without a problem, or with neither a score nor an answer.
        UnreadableLogError: a file that cannot be read.
    """
    for path in paths:
        for source in sources(path):
            chosen: str | None = None
            for place, published in rows(source):
                row = columns(published)
                # lm-evaluation-harness writes every response once for each filter.
                chosen = chosen or row.get("filter")
                if row.get("filter") == chosen:
                    where = f"{source.address}: {place.rpartition(': ')[2]}"
                    yield from _samples(where, row, rescore)


def _samples(place: str, row: Mapping[str, Any], rescore: bool) -> Iterator[Sample]:
    responses = _texts(_first(row, RESPONSES))
    scores = [] if rescore else _flat(_first(row, SCORES))
    number = max(len(responses), len(scores))
    if not number:
        remedy = f"give one of {', '.join(SCORES[:6])}, or {', '.join(RESPONSES[:3])}"
        raise UnusableError(place, f"no response and no score among {', '.join(row)}", remedy)
    for name, found in (("responses", responses), ("scores", scores)):
        if len(found) not in (0, number):
            raise UnusableError(place, f"{len(found)} {name} of {number}", RESCORE)
    prompt, dataset, step = _prompt(row), _first(row, SET), row.get("step")
    problem = _index(row) if prompt is None else prompt
    if problem is None:
        remedy = f"give one of {', '.join((*PROMPT[:4], *INDEX[:3]))}"
        raise UnusableError(place, "does not say which problem it is of", remedy)
    for i in range(number):
        yield Sample(
            place=place,
            dataset=dataset if isinstance(dataset, str) else None,
            problem=problem,
            prompt=prompt,
            response=responses[i] if responses else None,
            truth=answer_text(_first(row, TRUTH)),
            right=_is_right(place, scores[i]) if scores else None,
            step=step if isinstance(step, int) else None,
        )


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _flat(value: Any) -> list[Any]:
    """One value, or a list of them however nested."""
    if value is None:
        return []
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [inner for each in value for inner in _flat(each)]
    return [value]


def _texts(value: Any) -> list[str]:
    return [each for each in _flat(value) if isinstance(each, str)]


def _prompt(row: Mapping[str, Any]) -> str | None:
    """Text of the problem: a string, the last turn of a chat, or a column of the harness' doc."""
    for name in PROMPT:
        match row.get(name):
            case str(text) if text.strip():
                return text
            case [*_, {"content": str(text)}] if text.strip():
                return text
            case Mapping() as inner:
                found = _prompt(columns(inner))
                if found is not None:
                    return found
    return None


def _index(row: Mapping[str, Any]) -> str | None:
    extra = row.get("extra_info")
    found = _first(row, INDEX)
    if found is None and isinstance(extra, Mapping):
        found = extra.get("index")
    return None if found is None else str(found)


def _is_right(place: str, score: Any) -> bool:
    if isinstance(score, bool):
        return score
    if isinstance(score, int | float):
        if abs(score - RIGHT) < NEAR:
            return True
        if any(abs(score - wrong) < NEAR for wrong in WRONG):
            return False
    problem = f"score {score!r} is none of 1, 0.1, 0, -1, true, false"
    raise UnusableError(place, problem, RESCORE)
