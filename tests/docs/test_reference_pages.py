"""The generated reference says all there is, and nothing that is not."""

import re

import pytest
import reference_pages

from m2po_lab.cli.app import COMMANDS
from m2po_lab.findings.catalog import CATALOG
from m2po_lab.findings.thresholds import THRESHOLDS
from m2po_lab.logs.registry import READERS
from m2po_lab.logs.schema import ORDER


def test_every_command_has_its_options():
    text = reference_pages.commands()
    for name in COMMANDS:
        assert f"## m2po-lab {name}\n" in text
    assert "--fail-on" in text


def test_every_finding_and_every_threshold_is_there():
    text = reference_pages.findings()
    assert re.findall(r"^## `([\w-]+)`$", text, re.M) == list(CATALOG)
    for name, threshold in THRESHOLDS.items():
        assert f"| `{name}` | {threshold.value:g} |" in text


def test_every_format_is_there():
    text = reference_pages.formats()
    assert re.findall(r"^\| `([\w-]+)` \|", text, re.M) == [r.name for r in READERS]


def test_every_column_of_the_native_log_is_there():
    text = reference_pages.native_log()
    assert re.findall(r"^\| `(\w+)` \|", text, re.M) == list(ORDER)


@pytest.mark.parametrize("field", ["findings", "not_computable", "ratios"])
def test_the_report_page_names_the_fields(field):
    assert f"| `{field}` |" in reference_pages.report()
