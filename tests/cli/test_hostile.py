"""Markup and control characters in a log, in names of files and in arguments reach no terminal."""

import json
import random
import re
from pathlib import Path

import pytest

from m2po_lab.cli import main

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>"
CONTROL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r\x08[bold]"
EVIL = MARKUP + CONTROL
NAME = "\x1b[2J<img src=x onerror=alert(1)>\u202e"


def log(folder: Path) -> Path:
    """Rows that are evil wherever a text may stand, token ids and token texts among them."""
    draw = random.Random(0)
    path = folder / f"{NAME}.jsonl"
    rows = []
    for i in range(40):
        behavior = [-0.8 - 4 * draw.random() for _ in range(8)]
        rows.append(
            {
                "sequence_id": f"{EVIL}{i}",
                "group_id": f"{EVIL}{i // 4}",
                "prompt": EVIL,
                "response": EVIL,
                "finish_reason": EVIL,
                "token_ids": [EVIL] * 8,
                "token_texts": [EVIL] * 8,
                "rollout_log_probs": behavior,
                "old_log_probs": [min(x + draw.gauss(0, 0.8), 0.0) for x in behavior],
                "advantage": (-1.0) ** i,
                "reward": float(i % 2),
                "step": i // 10,
            }
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def metrics(folder: Path) -> Path:
    """A metric file whose names are evil."""
    path = folder / f"{NAME} metrics.jsonl"
    lines = [
        json.dumps({"step": i, "data": {EVIL: 1.0 / (i + 1), f"actor/entropy{EVIL}": 0.5, "x": i}})
        for i in range(8)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def is_clean(text: str) -> bool:
    """Nothing that a terminal acts on, and no way to turn text round."""
    return not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Status and everything that was printed."""
    status = main(list(arguments))
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def test_a_log_of_evil_texts_prints_and_writes_nothing_that_acts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    status, text = run(
        capsys, "analyze", str(log(tmp_path)), str(metrics(tmp_path)), "--out", str(out)
    )
    assert status == 0
    assert is_clean(text)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "\x1b" not in page


def test_json_on_standard_output_escapes_what_a_terminal_acts_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, text = run(capsys, "analyze", str(log(tmp_path)), "--json", "-")
    assert status == 0
    assert is_clean(text)
    assert json.loads(text)["rows"]["kept"] == 40


@pytest.mark.parametrize(
    "arguments",
    [
        (f"missing{EVIL}.jsonl",),
        ("LOG", "--columns", f"old={EVIL}"),
        ("LOG", "--columns", f"{EVIL}=x"),
        ("LOG", "--format", EVIL),
        ("LOG", "--ignore", EVIL),
        ("LOG", "--budget", EVIL),
        ("LOG", "--clip", EVIL),
        ("LOG", "--by", EVIL),
        ("LOG", "--thresholds", f"{EVIL}.toml"),
        ("LOG", f"--{EVIL}"),
        ("--explain", EVIL),
    ],
    ids=lambda arguments: arguments[-2][:12] if len(arguments) > 1 else "path",
)
def test_evil_arguments_end_in_one_clean_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    path = str(log(tmp_path))
    status, text = run(capsys, "analyze", *(path if a == "LOG" else a for a in arguments))
    assert status == 2
    assert is_clean(text)
    assert "Traceback" not in text
    assert len(text.strip().splitlines()) == 1
