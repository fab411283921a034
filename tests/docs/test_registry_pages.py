import re

import pytest
import registry_pages

from m2po_lab.core import OBJECTIVES, STATISTICS, objective


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    (folder / "objectives").mkdir()
    (folder / "objectives" / "gone.md").write_text("# an objective that was removed")
    registry_pages.write(folder)
    return folder


def test_every_objective_has_a_page_and_no_other_has(pages):
    assert {page.stem for page in (pages / "objectives").iterdir()} == set(OBJECTIVES)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_call_a_page_shows_makes_the_objective(pages, name):
    text = (pages / "objectives" / f"{name}.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    made = {}
    exec(code.split("loss, diagnostics")[0], made)
    chosen = made["chosen"]
    assert chosen.name == name
    assert dict(chosen.params) == OBJECTIVES[name].defaults


def test_objectives_whose_sources_disagree_say_which_reading_they_are(pages):
    sections = registry_pages.readings()
    assert set(sections) <= set(OBJECTIVES)
    assert {"minpro", "r2vpo", "stapo", "remix", "maspo", "bapo", "minirl"} <= set(sections)
    for name in OBJECTIVES:
        text = (pages / "objectives" / f"{name}.md").read_text()
        assert (f"readings.md#{name})" in text) == (name in sections), name


def test_calls_and_parameters_in_the_readings_exist():
    text = registry_pages.READINGS.read_text()
    for body, name in zip(
        re.split(r"^### \w+$|^## ", text, flags=re.MULTILINE)[2:],
        registry_pages.readings(),
        strict=False,
    ):
        for given in re.findall(r"`([a-z_]+=[^`]+)`", body):
            objective(name, **eval(f"dict({given})", {"inf": float("inf")}))


def test_every_statistic_is_in_the_table(pages):
    text = (pages / "statistics.md").read_text()
    assert [re.match(r"\| `(\w+)`", line).group(1) for line in text.splitlines()[7:]] == list(
        STATISTICS
    )
