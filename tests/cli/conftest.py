"""The command as users run it: a process of its own, or called in this one to save its start."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from m2po_lab.cli import main

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT / "tests" / "data" / "real"
START = [sys.executable, "-c", "import sys; from m2po_lab.cli import main; sys.exit(main())"]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(**changes: str) -> dict[str, str]:
    """The caller's environment without what changes colours and widths."""
    kept = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "NO_COLOR", "FORCE_COLOR"}}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **changes}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Give a function that runs `m2po-lab` in an empty directory."""

    def call(*arguments: str | Path, **changes: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*START, *map(str, arguments)],
            cwd=tmp_path,
            env=environment(**changes),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
        )

    return call


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Give a function that runs the command in this process, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "M2PO_LAB_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)

    def run_here(*arguments: str | Path, **changes: str) -> "subprocess.CompletedProcess[str]":
        for name, value in changes.items():
            monkeypatch.setenv(name, value)
        status = main([*map(str, arguments)])
        done = capsys.readouterr()
        return subprocess.CompletedProcess(list(arguments), status, done.out, done.err)

    return run_here
