import math

import numpy as np
import pytest

from m2po_lab.tutorials import check, solution
from m2po_lab.tutorials.answers import exercises
from tests.tutorials.wrong_answers import WRONG


@pytest.mark.parametrize("name", exercises())
def test_the_right_answer_passes(name):
    verdict = check(name, exercises()[name].right())
    assert verdict.passed is True, verdict


@pytest.mark.parametrize("name", exercises())
def test_wrong_answers_fail_and_are_told_why(name):
    assert len(WRONG[name]) >= 3
    for wrong in WRONG[name]:
        verdict = check(name, wrong)
        assert verdict.passed is False, (wrong, verdict)
        assert len(verdict.message) > 10


@pytest.mark.parametrize("name", exercises())
def test_the_solution_explains(name):
    text = solution(name)
    assert len(text) > 60
    assert text._repr_markdown_() == text


def test_every_wrong_answer_belongs_to_an_exercise():
    assert set(WRONG) == set(exercises())


@pytest.mark.parametrize("name", exercises())
def test_three_dots_are_neither_right_nor_wrong(name):
    assert check(name, ...).passed is None


def test_a_common_mistake_is_told_apart_from_a_wild_guess():
    assert "M2 averages d squared" in check("weights-token", math.log(0.2)).message
    assert check("weights-token", 17).message == "17 is too high."
    assert check("weights-token", 0.001).message == "0.001 is too low."


def test_numbers_may_come_from_numpy_and_may_be_rounded():
    assert check("weights-token", np.float32(2.59)).passed
    assert check("weights-token", np.array(2.59)).passed
    assert not check("weights-token", 2.5).passed


@pytest.mark.parametrize("answer", ["2.59", True, None, [1, 2], math.nan, math.inf])
def test_what_is_no_number_is_told_so(answer):
    assert "asks for a number" in check("weights-token", answer).message


def test_a_choice_outside_the_options_names_them():
    assert "Choose from chi2" in check("weights-blind", "kl").message
    assert "Choose from chi2" in check("weights-blind", 3).message


def test_a_verdict_shows_in_a_notebook_without_markup_of_the_answer():
    shown = check("weights-blind", "ess_fraction")._repr_html_()
    assert shown.startswith("<div")
    assert "not yet" in shown
    assert "&lt;" in type(check("weights-token", ...))("x", False, "<script>")._repr_html_()


def test_an_unknown_exercise_is_named():
    with pytest.raises(ValueError, match="no exercise 'ess'; one of weights-token"):
        check("ess", 1)


def test_a_function_that_is_another_variant_is_told_which():
    assert "AReaL" in check("m2po-function", WRONG["m2po-function"][2]).message
    assert (
        "the mean has to run over H only"
        in check("m2po-function", WRONG["m2po-function"][1]).message
    )


def test_a_function_that_fails_is_told_where():
    assert "raises ZeroDivisionError" in check("m2po-function", WRONG["m2po-function"][4]).message
