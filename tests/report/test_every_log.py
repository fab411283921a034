"""Whatever a log holds, its report is valid, strict, narrow enough and safe."""

from pathlib import Path

import jsonschema
import pytest

import m2po_lab
from m2po_lab.report.document import dumps, schema
from m2po_lab.report.outline import BREAKDOWNS
from m2po_lab.report.page import page
from m2po_lab.report.terminal import render

DATA = Path(__file__).resolve().parents[1] / "data"
LOGS = [
    *sorted((DATA / "pathologies").glob("*.jsonl")),
    *sorted(p for p in (DATA / "frameworks").iterdir() if p.is_dir()),
    *sorted((DATA / "metrics").glob("*.json*")),
    DATA / "real" / "rlloggingboard_token_level.jsonl",
]


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_every_log_has_a_report_in_every_medium(log):
    pytest.importorskip("torch")
    report = m2po_lab.analyze(log).to_dict()
    jsonschema.Draft202012Validator(schema()).validate(report)
    assert dumps(report).isascii()
    lines = render(report, width=80, by=BREAKDOWNS).splitlines()
    assert max(map(len, lines)) <= 80
    assert "<script" not in page(report)
