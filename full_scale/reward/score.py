"""Scores as verl asks for them, one answer or a batch; both come from the same processes."""

from collections.abc import Sequence
from typing import Any

from full_scale.reward import judges as processes
from full_scale.reward.answer import LONGEST, boxed
from full_scale.reward.judges import Judges, Question
from full_scale.reward.verdict import Verdict

RIGHT, READABLE, NOTHING = 1.0, 0.1, 0.0


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str | float,
    extra_info: Any = None,
    *,
    box_required: bool = True,
) -> dict[str, float]:
    r"""Score one response, with the signature that verl's reward loop calls.

    Args:
        data_source: not used; every data set is judged alike.
        solution_str: the response.
        ground_truth: the right answer.
        extra_info: not used.
        box_required: whether only an answer in `\boxed{}` counts, as in the authors' code; without
            it, math-verify looks for one at the end of a response that has no box. Set by
            `+reward.custom_reward_function.reward_kwargs.box_required=false`.

    Returns:
        `score`: 1 for a right answer, .1 for another one, 0 for none. `acc`: 1 if right, else 0;
        verl's validation averages it. `answered`: whether an answer was found. `cut_off`: whether
        judging it hit a limit, which never makes an answer right.
    """
    return compute_scores(
        [data_source], [solution_str], [ground_truth], [extra_info], box_required=box_required
    )[0]


def compute_scores(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[str | float],
    extra_infos: Sequence[Any] | None = None,
    *,
    box_required: bool = True,
    judges: Judges | None = None,
) -> list[dict[str, float]]:
    """Score many responses at once, with the signature of verl's batch reward manager.

    Args:
        data_sources: not used.
        solution_strs: responses.
        ground_truths: the right answer of each.
        extra_infos: not used.
        box_required: as for `compute_score`.
        judges: who judges; those of this process by default.

    Returns:
        What `compute_score` returns, for each.
    """
    questions: list[Question | None] = [
        _question(response, str(truth), box_required)
        for response, truth in zip(solution_strs, ground_truths, strict=True)
    ]
    asked = [question for question in questions if question is not None]
    verdicts = iter((judges or processes.shared)(asked))
    return [
        _scored(question, Verdict.NOTHING if question is None else next(verdicts))
        for question in questions
    ]


def _question(response: str, truth: str, box_required: bool) -> Question | None:
    answer = boxed(response)
    if answer is not None:
        return Question(answer, truth)
    return None if box_required else Question(response[-LONGEST:], truth, in_text=True)


def _scored(question: Question | None, verdict: Verdict | None) -> dict[str, float]:
    # An answer in a box was found by whoever asked; in a text it is found by the judge, if ever.
    found = question is not None and not question.in_text
    answered = found if verdict is None else verdict is not Verdict.NOTHING
    right = verdict is Verdict.RIGHT
    return {
        "score": RIGHT if right else READABLE if answered else NOTHING,
        "acc": float(right),
        "answered": float(answered),
        "cut_off": float(verdict is None),
    }
