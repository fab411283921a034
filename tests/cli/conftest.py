"""The command as users run it: a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

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
