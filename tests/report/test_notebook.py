from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import pyplot

import m2po_lab
from m2po_lab.report.figures import FIGURES
from m2po_lab.report.notebook import Plots, as_html
from tests.report import examples
from tests.report.test_page import ATTACK, Elements, attacked

LOG = Path(__file__).resolve().parents[1] / "data" / "real" / "trl_grpo_bf16.jsonl"


@pytest.fixture(scope="module")
def analysis():
    return m2po_lab.analyze(LOG)


@pytest.fixture
def figure(monkeypatch):
    mpl.use("agg")
    figure = mpl.figure.Figure()
    yield figure
    figure.clear()


def test_an_analysis_shows_as_a_table_in_a_notebook(analysis):
    html = analysis._repr_html_()
    assert "<table>" in html
    assert "1.027" in html
    assert "moving-without-signal" in html


def test_print_gives_what_the_command_prints(analysis):
    assert "What to look at" in str(analysis)


def test_markup_from_a_log_stays_text_in_a_notebook():
    tags = {tag for tag, _ in Elements(as_html(attacked(ATTACK))).found}
    assert tags <= {"p", "b", "table", "thead", "tbody", "tr", "th", "td"}


def test_a_report_without_ratio_shows_too():
    assert "No ratio" in as_html(examples.bare())


def test_every_figure_draws_on_axes_that_are_given(analysis, figure):
    for name in ("by_lag", "by_quadrant", "log_ratio", "clip_sweep"):
        axes = figure.add_subplot()
        assert getattr(analysis.plot, name)(axes) is figure
        assert axes.has_data()
    panels = list(figure.subplots(3, 1))
    assert analysis.plot.by_step(panels) is figure
    assert all(panel.has_data() for panel in panels)


def test_every_figure_has_a_method_that_returns_it(analysis):
    mpl.use("agg")
    report = examples.full()
    for figure in FIGURES:
        drawn = getattr(Plots(report), figure.name)()
        assert isinstance(drawn, mpl.figure.Figure)
        assert len(drawn.axes) >= figure.panels
        assert tuple(drawn.get_size_inches()) == pytest.approx(figure.size(figure.rows(report)))
    assert not pyplot.get_fignums()
    assert set(analysis.plot.names) <= {figure.name for figure in FIGURES}


def test_a_figure_without_numbers_names_those_that_have_some(analysis):
    with pytest.raises(ValueError, match=r"no figure 'metrics' here; one of log_ratio, "):
        analysis.plot("metrics")
    with pytest.raises(ValueError, match="one of none"):
        Plots(examples.bare() | dict.fromkeys(("metrics", "reward", "entropy")))("by_lag")
    with pytest.raises(ValueError, match="by_step needs 3 axes, got 1"):
        analysis.plot.by_step([None])
