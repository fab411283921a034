import importlib.util
import re
from pathlib import Path

import pytest

from m2po_lab.core import OBJECTIVES, STATISTICS

SOURCE = Path(__file__).parents[2] / "docs" / "registry_pages.py"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("registry_pages", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("pages")
    (folder / "objectives").mkdir()
    (folder / "objectives" / "gone.md").write_text("# an objective that was removed")
    module.write(folder)
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


def test_every_statistic_is_in_the_table(pages):
    text = (pages / "statistics.md").read_text()
    assert [re.match(r"\| `(\w+)`", line).group(1) for line in text.splitlines()[7:]] == list(
        STATISTICS
    )
