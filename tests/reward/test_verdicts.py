"""Pairs of answers, with the verdict that a careful reader gives; and what is known to fail."""

import tomllib
from pathlib import Path

import pytest

from full_scale.reward.spelling import normal
from full_scale.reward.verdict import Verdict, judge

TABLE = tomllib.loads((Path(__file__).parents[1] / "data/reward_answers.toml").read_text())
MISJUDGED = TABLE.pop("misjudged")


def pairs(table):
    return [
        (kind, verdict, truth, answer)
        for kind, verdicts in table.items()
        for verdict, rows in verdicts.items()
        for truth, answer in rows
    ]


def test_the_table_is_large_and_holds_right_and_wrong_answers_of_every_kind():
    assert len(pairs(TABLE)) > 250
    assert all(kind["right"] and kind["wrong"] for kind in TABLE.values())


@pytest.mark.parametrize("kind", TABLE)
def test_every_pair_of_the_table_gets_its_verdict(kind):
    judged = [
        (truth, answer, judge(answer, truth).value)
        for _, _, truth, answer in pairs({kind: TABLE[kind]})
    ]
    assert judged == [
        (truth, answer, verdict) for _, verdict, truth, answer in pairs({kind: TABLE[kind]})
    ]


@pytest.mark.parametrize(("_", "verdict", "truth", "answer"), pairs({"": MISJUDGED}))
def test_the_known_misjudgements_are_still_there_and_no_longer_than_that(_, verdict, truth, answer):
    assert judge(answer, truth).value != verdict


@pytest.mark.parametrize(
    ("kind", "verdict", "truth", "answer"),
    [pair for pair in pairs(TABLE) if pair[1] == "right"],
)
def test_every_truth_equals_itself(kind, verdict, truth, answer):
    assert judge(truth, truth) is judge(answer, answer) is Verdict.RIGHT


@pytest.mark.parametrize("latex", [row[3] for row in pairs(TABLE)])
def test_one_spelling_is_respelled_as_itself(latex):
    assert normal(normal(latex)) == normal(latex)


def test_an_answer_is_looked_for_in_a_text_only_when_asked_to():
    assert judge("so it is 7", "7", in_text=True) is Verdict.RIGHT
    assert judge("so it is 8", "7", in_text=True) is Verdict.WRONG
    assert judge("no idea", "7", in_text=True) is Verdict.NOTHING
    assert judge("so it is 7", "8") is Verdict.WRONG


def test_answers_too_long_to_compare_are_wrong_unless_they_are_the_same_letters():
    long = "9" * 200_000
    assert judge(long, "7") is Verdict.WRONG
    assert judge("7", long) is Verdict.WRONG
    assert judge(long, long) is Verdict.RIGHT
