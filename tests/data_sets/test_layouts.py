"""A published row gives its question and its answer, in whichever layout it was published."""

import math

import numpy as np
import pytest

from full_scale.data.answers import answer_text
from full_scale.data.layouts import needs_an_image, problem_of
from full_scale.data.rows import bare, key
from full_scale.data.sets import EVALUATION, SETS, known
from tests.data_sets.published import ROWS


def test_every_set_has_a_row_in_its_layout():
    assert set(SETS) <= set(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_gives_its_question_and_answer(name):
    row, expected = ROWS[name]
    integer = name in SETS and SETS[name].integer
    problem = problem_of(row, integer=integer)
    assert (problem.question, problem.answer) == expected


@pytest.mark.parametrize(
    "answer", [None, "", "  ", "$$", [], [""], [None], {}, {"unit": "m"}, math.nan, True, object()]
)
def test_what_holds_no_answer_is_none_and_never_text(answer):
    assert answer_text(answer) is None
    assert problem_of({"question": "Find x.", "answer": answer}).answer is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (7, "7"),
        (np.int64(7), "7"),
        (2.5, "2.5"),
        ("  12. ", "12"),
        ("-36.0", "-36"),
        ("3.140", "3.140"),
        (r"\$36", r"\$36"),
        (r"\(x=2\)", "x=2"),
        (r"[1,2]", "[1,2]"),
        ('["48", "384"]', "48, 384"),
        ("010", "010"),
        (r"$\{x|-2\leq x < 1\}$", r"\{x|-2\leq x < 1\}"),
    ],
)
def test_an_answer_is_written_without_what_only_sets_it(answer, expected):
    assert answer_text(answer) == expected


@pytest.mark.parametrize(
    "row",
    [{}, {"answer": "1"}, {"question": " "}, {"prompt": [{"role": "assistant", "content": "x"}]}],
)
def test_a_row_without_a_question_is_none(row):
    assert problem_of(row) is None


def test_a_problem_with_a_picture_is_seen():
    row, _ = ROWS["olympiad"]
    assert not needs_an_image(row)
    assert needs_an_image({**row, "image_1": {"bytes": b"", "path": None}})
    assert needs_an_image({**row, "modality": "Multimodal"})


def test_copies_of_a_question_share_a_key_and_other_questions_do_not():
    assert key("What is $1 + 1$?") == key(r"what is 1\,+\,1")
    assert key("Find $2-3$.") != key("Find $2+3$.")
    assert key("Find $2.3$.") != key("Find $23$.")


def test_questions_are_taken_out_of_ready_prompts():
    questions = [f"{word} is {i} + {i}?" for i, word in enumerate(["What", "How", "Which"] * 4)]
    prompts = [f"Solve this problem: {text} Put it in a box." for text in questions]
    assert bare(prompts) == questions
    assert bare(prompts[:3]) == prompts[:3]


def test_a_set_is_known_by_name_hub_id_and_the_names_of_other_scripts():
    assert known("AIME24") == known("HuggingFaceH4/aime_2024_x4") == SETS["aime24"]
    assert known("gaokao") == SETS["gaokao"]
    assert known("dapo_math") == SETS["dapo"]
    assert known("gsm8k") is None
    assert len(EVALUATION) == 8
