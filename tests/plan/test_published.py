"""Published times: the errors that the documentation states are those that come out."""

import re
from pathlib import Path

import pytest

from full_scale.plan.published import comparisons

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "plan.md"


@pytest.mark.slow
def test_the_errors_of_the_page_are_those_of_the_plan():
    rows = {
        (cells[0], float(cells[2])): (float(cells[3]), int(cells[4].removesuffix("%")))
        for line in PAGE.read_text().splitlines()
        if re.search(r"\| (absolute|overlap) \|", line)
        for cells in [[cell.strip() for cell in line.strip("| ").split("|")]]
    }
    found = list(comparisons())
    assert len(rows) == len(found) == 10
    for each in found:
        planned, error = rows[(each.run, each.published)]
        assert each.planned == pytest.approx(planned, rel=0.02)
        assert 100 * each.error == pytest.approx(error, abs=2)
