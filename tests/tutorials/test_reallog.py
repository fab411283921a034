"""The shipped run, as notebook 06 reads it."""

import json

import numpy as np
import pytest

import m2po_lab
from m2po_lab.tutorials.lessons import reallog


@pytest.fixture(scope="module")
def tokens():
    return reallog.tokens()


def test_questions_are_those_of_the_prompts():
    rows = map(json.loads, reallog.LOG.read_text().splitlines())
    for row in rows:
        text = "".join(reallog.TEXT.get(i, "|") for i in row["prompt_ids"])
        number = int(row["sequence_id"].split("row")[1])
        question = reallog.QUESTIONS[row["versions"][0]][number % 16 // 8]
        assert f"| {question}|" in text


def test_every_token_of_the_log_is_read_with_its_text(tokens):
    stats = m2po_lab.analyze(reallog.LOG).to_dict()["ratios"]["current/behavior"]["all"]
    assert len(tokens) == stats["n"]
    assert np.mean([t.log_ratio**2 for t in tokens]) == pytest.approx(stats["m2"])
    assert {t.text for t in tokens} <= set(reallog.TEXT.values())


def test_rewards_of_the_answers_are_those_the_trainer_logged(tokens):
    answers = reallog.answers(tokens)
    assert len(answers) == 64
    report = m2po_lab.analyze([reallog.LOG, reallog.METRICS]).to_dict()
    curves = reallog.curves(report)
    for version in reallog.QUESTIONS:
        right = np.mean([a.right for a in answers if a.sampled_by == version])
        (logged,) = curves["reward"][curves["step"] == version]
        assert right == logged


def test_the_first_digit_is_unlearned_within_one_batch(tokens):
    path = reallog.begins_with(tokens, "24 + 71", "1")
    assert list(path) == [8, 9, 10, 11]
    assert path[8] > 0.5
    assert path[11] < 1e-4
