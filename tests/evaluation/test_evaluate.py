"""Known generations give known numbers, and the paper's row is beside them."""

from dataclasses import replace

import pytest

from full_scale.data.sets import EVALUATION, SETS
from full_scale.errors import UnusableError
from full_scale.evaluation import PAPER, Sample, counted, evaluate, of_step, report, scored
from full_scale.evaluation.paper import arm_of, published
from full_scale.recipes import RECIPES

RECIPE = "qwen2.5-math-7b-m2po-s256"
SAMPLE = Sample(
    place="g.jsonl: line 1",
    dataset="amc23",
    problem="0",
    prompt=None,
    response=None,
    truth="1",
    right=None,
    step=None,
)


def samples(right, dataset="amc23", step=None):
    """Samples of problems, by how many of how many are right."""
    return [
        replace(SAMPLE, dataset=dataset, problem=str(i), right=j < r, step=step)
        for i, (r, n) in enumerate(right)
        for j in range(n)
    ]


def all_sets(right):
    return [each for name in EVALUATION for each in samples(right, name)]


def test_known_answers_give_avg_and_pass_in_percent():
    found = evaluate(counted(samples([(4, 4), (0, 4), (1, 4), (2, 4)])))
    entry = found["sets"]["amc23"]
    assert (entry["avg"]["k"], entry["avg"]["percent"]) == (4, 43.75)
    passes = {each["k"]: each["percent"] for each in entry["pass"]}
    assert passes == {1: 43.75, 2: pytest.approx(100 * (1 + 0.5 + 5 / 6) / 4), 4: 75.0}
    assert entry["samples"] == {"all": 16, "min": 4, "max": 4}
    assert (entry["problems"], entry["published"]) == (4, 40)


def test_where_samples_are_uneven_every_problem_counts_alike():
    entry = evaluate(counted(samples([(1, 1), (0, 3)])))["sets"]["amc23"]
    assert entry["avg"]["k"] is None
    assert entry["avg"]["percent"] == 50
    assert [each["k"] for each in entry["pass"]] == [1]


def test_a_pass_at_more_samples_than_there_are_is_null_with_a_reason():
    found = evaluate(counted(samples([(1, 4)])), ks=(4, 8))
    assert found["sets"]["amc23"]["pass"][1] == {"k": 8, "percent": None, "low": None, "high": None}
    assert found["not_computable"][0] == {
        "what": "amc23 pass@8",
        "needs": "8 samples of every problem; one has 4",
    }


def test_an_average_without_one_of_the_eight_sets_is_null_and_names_it():
    found = evaluate(counted(all_sets([(1, 4)])[4:]))
    assert found["average"]["percent"] is None
    assert found["not_computable"] == [{"what": "average", "needs": "generations of AIME24"}]


def test_the_average_is_the_mean_of_the_sets_and_stands_beside_the_papers():
    found = evaluate(counted(all_sets([(1, 4), (2, 4)])), recipe=RECIPE)
    assert found["average"]["percent"] == 37.5
    assert found["average"]["paper"] == 48.8
    assert found["average"]["difference"] == pytest.approx(37.5 - 48.8)
    aime = found["sets"]["aime24"]
    assert (aime["paper"], aime["difference"]) == (33.3, pytest.approx(37.5 - 33.3))
    assert aime["paper_inside"]


def test_a_paper_number_far_off_is_outside_the_interval():
    found = evaluate(counted(samples([(0, 4)] * 500, "math500")), recipe=RECIPE)
    assert found["sets"]["math500"]["paper_inside"] is False
    assert " *" in report(found)


def test_a_recipe_that_the_paper_does_not_report_has_no_number_beside_it():
    found = evaluate(counted(all_sets([(1, 4)])), recipe="qwen2.5-math-7b-none-s256")
    assert found["paper"] is None
    assert {entry["paper"] for entry in found["sets"].values()} == {None}
    assert published(f"{RECIPE}-budget0.01") is None


def test_every_row_of_the_paper_is_a_recipe_and_its_average_is_the_mean_of_its_columns():
    assert len(PAPER) == 22
    for arm, row in PAPER.items():
        assert arm_of(f"{arm.model}-{arm.method}-s{arm.staleness}") == arm
        assert set(row.sets) == set(EVALUATION)
        # One average (GSPO, Qwen3-Base-1.7B) is .06 below the mean of its rounded columns.
        assert sum(row.sets.values()) / 8 == pytest.approx(row.average, abs=0.065)
    assert all(f"{arm.model}-{arm.method}-s{arm.staleness}" in RECIPES for arm in PAPER)


def test_responses_without_a_score_are_judged_by_the_reward():
    answers = [r"\boxed{2}", r"\boxed{\frac{4}{2}}", r"\boxed{3}", "2"]
    open_ones = [replace(SAMPLE, response=text, truth="2") for text in answers]
    done = scored([*open_ones, replace(SAMPLE, right=True)])
    assert [sample.right for sample in done] == [True, True, False, False, True]


@pytest.mark.parametrize(
    ("change", "said"),
    [({"response": "x", "truth": None}, "no right answer"), ({"response": None}, "no response")],
)
def test_what_can_be_judged_by_nothing_is_refused(change, said):
    with pytest.raises(UnusableError, match=f"g.jsonl: line 1: has no score and {said}"):
        scored([replace(SAMPLE, **change)])


def test_of_several_steps_the_last_the_best_or_the_named_one_counts():
    runs = [
        *samples([(1, 4)], step=50),
        *samples([(3, 4)], step=100),
        *samples([(2, 4)], step=150),
    ]
    for which, step in (("last", 150), ("best", 100), ("50", 50)):
        number, chosen = of_step(runs, which)
        assert (number, len(chosen)) == (step, 4)
    with pytest.raises(UnusableError, match="no generation is of step 70; one of 50, 100, 150"):
        of_step(runs, "70")
    assert of_step(samples([(1, 4)]), "last")[0] is None


def test_the_report_fits_100_columns_and_says_what_it_lacks():
    text = report(evaluate(counted(samples([(1, 16)] * 30, "aime24")), recipe=RECIPE, step=200))
    assert max(map(len, text.splitlines())) <= 100
    assert "at step 200" in text
    assert "not computable: average, needs generations of AIME25, AMC23" in text
    assert "Table 1, Qwen2.5-Math-7B:\n| M2PO s=256 | 6.2 |  |  |  |  |  |  |  |  |" in text


def test_sets_come_in_the_order_of_the_paper_and_others_after_them():
    runs = [
        *samples([(1, 1)], "gsm8k"),
        *samples([(1, 1)], "olympiad"),
        *samples([(1, 1)], "aime24"),
    ]
    assert list(evaluate(counted(runs))["sets"]) == ["aime24", "olympiad", "gsm8k"]
    assert SETS["aime24"].samples == 16
