"""Fixtures of the log tests."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write rows as JSON lines and give the path; a text is written as it is."""

    def _write(*rows: Any, name: str = "log.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in rows))
        return path

    return _write
