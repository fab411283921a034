"""The committed notebooks against their sources; `notebooks/run.py` compares the outputs too."""

import copy

import jupytext
import nbformat
import pytest

from notebooks import run

SOURCES = run.sources()


@pytest.fixture(params=SOURCES, ids=lambda source: source.stem)
def pair(request):
    source = request.param
    return jupytext.read(source), nbformat.read(source.with_suffix(".ipynb"), as_version=4)


def test_its_cells_are_those_of_the_source(pair):
    source, committed = pair
    assert [(c.cell_type, c.source) for c in source.cells] == [
        (c.cell_type, c.source) for c in committed.cells
    ]


def test_it_ran_to_the_end_without_an_error_or_a_warning(pair):
    _, committed = pair
    code = [cell for cell in committed.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    kinds = {output.output_type for cell in code for output in cell.outputs}
    assert kinds <= {"display_data", "execute_result"}


def test_below_every_slider_there_is_a_picture_with_a_sentence(pair):
    _, committed = pair
    for cell in committed.cells:
        if cell.cell_type == "code" and "lab.slide(" in cell.source:
            slider, picture = cell.outputs
            assert slider.data["text/plain"].startswith("[sliders: ")
            assert "application/vnd.jupyter.widget-view+json" in slider.data
            assert len(picture.data["image/png"]) > 4000
            assert len(picture.metadata["image/png"]["alt"]) > 20


def test_saved_sliders_have_a_state_to_be_shown_from(pair):
    _, committed = pair
    models = committed.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    views = [
        output.data["application/vnd.jupyter.widget-view+json"]["model_id"]
        for cell in committed.cells
        for output in cell.get("outputs", ())
        if "application/vnd.jupyter.widget-view+json" in output.get("data", {})
    ]
    assert views
    assert set(views) <= set(models)


def test_a_number_that_differs_is_seen_and_a_last_digit_is_not(pair):
    _, committed = pair
    assert list(run.differences(committed, committed)) == []
    changed = copy.deepcopy(committed)
    cell = next(c for c in changed.cells if any("**" in t for _, t in run.outputs(c)))
    cell.outputs[0].data["text/markdown"] += " 17"
    (problem,) = run.differences(committed, changed)
    assert "is now" in problem


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("M2 is 3.20", "M2 is 3.21", True),
        ("M2 is 3.20", "M2 is 3.40", False),
        ("M2 is 3.20", "k3 is 3.20", False),
        ("97 %", "98 %", True),
        ("1e-06", "2e-06", True),
    ],
)
def test_texts_agree_up_to_the_last_digits_of_their_numbers(one, other, same):
    assert run.same(one, other) is same
