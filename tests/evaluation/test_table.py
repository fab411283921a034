"""The whole table: the paper's numbers, ours below or nothing."""

import json

import pytest

from full_scale.data.sets import EVALUATION
from full_scale.errors import UnusableError
from full_scale.evaluation import PAPER, evaluate, table, text
from full_scale.evaluation.results import read_result

RECIPE = "qwen2.5-math-7b-m2po-s256"


def ours(recipe=RECIPE, sets=EVALUATION):
    return evaluate({name: {"0": (1, 4), "1": (2, 4)} for name in sets}, recipe=recipe)


def lines(whole, recipe):
    """The paper's line and ours of a recipe, as numbers in text."""
    shown = text(whole).splitlines()
    rows = [row["recipe"] for row in whole["rows"]]
    papers = [i for i, line in enumerate(shown) if line[20:26] == "paper "]
    assert len(papers) == len(rows)
    place = papers[rows.index(recipe)]
    return shown[place].split()[3:], shown[place + 1].split()[1:]


def test_without_results_our_numbers_are_empty_and_never_zero():
    whole = table()
    assert len(whole["rows"]) == len(PAPER)
    assert {row["ours"] for row in whole["rows"]} == {None}
    assert text(whole).count("ours\n") == len(PAPER)
    assert max(map(len, text(whole).splitlines())) <= 100


def test_a_result_stands_below_the_papers_row():
    paper, mine = lines(table([ours()]), RECIPE)
    assert paper == ["33.3", "17.5", "63.8", "40.6", "84.0", "66.4", "38.1", "47.1", "48.8"]
    assert mine == ["37.5"] * 9


def test_a_set_that_was_not_evaluated_stays_empty():
    whole = table([ours(sets=("aime24", "math500"))])
    (row,) = (row for row in whole["rows"] if row["recipe"] == RECIPE)
    assert row["ours"] == [37.5, None, None, None, 37.5, None, None, None, None]


def test_a_recipe_that_the_paper_does_not_report_gets_a_row_without_paper_numbers():
    name = f"{RECIPE}-budget0.01"
    whole = table([ours(name), ours("qwen2.5-math-7b-none-s256")])
    added = [row for row in whole["rows"] if row["paper"] is None]
    assert [row["row"] for row in added] == ["M2PO s=256 budget0.01", "no trust region s=256"]
    assert len(whole["rows"]) == len(PAPER) + 2
    models = [row["model"] for row in whole["rows"]]
    assert len({model for i, model in enumerate(models) if models[i - 1] != model}) == 6


def test_numbers_are_printed_as_the_paper_prints_them():
    assert " 42.99 " in text(table())
    assert " 82.3 " in text(table())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "no result of m2po-lab eval"),
        ("[1]", "no result of m2po-lab eval"),
        (json.dumps({"schema": "other/1", "recipe": "x"}), "schema 'other/1'"),
        (json.dumps({"schema": "m2po-lab/eval/1", "recipe": None}), "does not say its recipe"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path, content, said):
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(UnusableError, match=said):
        read_result(tmp_path / "r.json")
