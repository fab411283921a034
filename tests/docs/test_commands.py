"""Every shell block of the documentation that is marked `run` is run, in a folder of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```sh run\n(.*?)^```", re.M | re.S)
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if BLOCK.search(page.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_as_shown(page, tmp_path):
    (tmp_path / "m2po_lab").symlink_to(ROOT / "m2po_lab")
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for block in BLOCK.findall(page.read_text()):
        done = subprocess.run(
            ["bash", "-euc", block],
            cwd=tmp_path,
            env={**os.environ, "PATH": search, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"
        assert "Traceback" not in done.stderr


def test_there_are_commands_to_run():
    assert {"quickstart", "analyze", "ci_gate"} <= {page.stem for page in PAGES}


PATHS = re.compile(r"`((?:tests|bench|m2po_lab|toy_envs|full_scale|notebooks)/[\w./-]+)`")


@pytest.mark.parametrize(
    "page", ["claims.md", "explanation/variants.md", "explanation/distributed.md"]
)
def test_the_evidence_that_a_page_names_exists(page):
    names = PATHS.findall((ROOT / "docs" / page).read_text())
    assert names
    for name in names:
        assert (ROOT / name).exists(), name
