"""A sample finds its set: by prepared data, by its row, or by the name of its file."""

import json
from dataclasses import replace

import pytest

from full_scale.data import Given, prepare
from full_scale.errors import UnusableError
from full_scale.evaluation import Prepared, Sample, attributed
from full_scale.evaluation.attribute import named_in

SAMPLE = Sample(
    place="50.jsonl: line 1",
    dataset=None,
    problem="p",
    prompt=None,
    response="x",
    truth="1",
    right=True,
    step=50,
)


@pytest.fixture
def data(tmp_path):
    """AIME and AMC, of which one question is part of another and two share an answer."""
    sets = {
        "aime24": [("Find $1$.", "1"), ("Find $1$. Then add $2$ to it.", "3")],
        "amc23": [("Find one.", "1"), ("What is $x+1$ for $x=2$?", "3")],
    }
    for name, rows in sets.items():
        lines = [json.dumps({"question": q, "answer": a}) + "\n" for q, a in rows]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    prepare(tmp_path / "data", list(sets), Given(folders=(tmp_path,)))
    return tmp_path / "data"


def of(data, prompt, truth):
    sample = replace(SAMPLE, prompt=prompt, problem=prompt, truth=truth)
    (found,) = attributed([sample], Prepared(data))
    return found.dataset, found.problem, found.truth


def test_a_prompt_in_a_chat_template_finds_its_question(data):
    prompt = "system\nBe brief.\nuser\nWhat is $x+1$  for $x=2$?\n\nBox it.\nassistant\n"
    assert of(data, prompt, "3") == ("amc23", "1", "3")


def test_of_two_questions_in_a_prompt_the_longer_is_meant(data):
    assert of(data, "Find $1$. Then add $2$ to it. Box it.", "3") == ("aime24", "1", "3")
    assert of(data, "Find $1$. Then add $2$ to it. Box it.", None) == ("aime24", "1", "3")
    assert of(data, "Find $1$. Box it.", "1") == ("aime24", "0", "1")


def test_a_prompt_of_no_prepared_set_is_refused_unless_it_is_named(data):
    sample = replace(SAMPLE, prompt="Who?", problem="Who?")
    with pytest.raises(UnusableError, match=r"50.jsonl: line 1: is of no prepared set; --set"):
        list(attributed([sample], Prepared(data)))
    (found,) = attributed([sample], Prepared(data), "gsm8k")
    assert (found.dataset, found.problem) == ("gsm8k", "Who?")


def test_without_data_the_row_comes_first_then_the_option_then_the_file():
    said = replace(SAMPLE, dataset="HuggingFaceH4/aime_2024_x4", place="amc23.jsonl: line 1")
    assert [each.dataset for each in attributed([said], None, "minerva")] == ["aime24"]
    unsaid = replace(said, dataset=None)
    assert [each.dataset for each in attributed([unsaid], None, "minerva")] == ["minerva"]
    assert [each.dataset for each in attributed([unsaid])] == ["amc23"]
    with pytest.raises(UnusableError, match="does not say which set it is of; --data"):
        list(attributed([SAMPLE]))


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("out/samples_aime25_2025-10-01.jsonl: line 3", "aime25"),
        ("math_eval/gaokao2023en/test_qwen25.jsonl: line 1", "gaokao2023en"),
        ("runs/hendrycks_math500.parquet: row 1", "hendrycks_math500"),
        ("runs/aime245.jsonl: line 1", None),
        ("validation/50.jsonl: line 1", None),
    ],
)
def test_the_name_of_a_file_names_a_set_only_as_a_whole_word(place, name):
    assert named_in(place) == name


def test_a_folder_that_was_not_prepared_is_refused(tmp_path):
    with pytest.raises(UnusableError, match="holds no prepared set; m2po-lab data prepare"):
        Prepared(tmp_path)
