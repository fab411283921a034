"""README.md and ARCHITECTURE.md say what the program does."""

import contextlib
import importlib.util
import io
import re
from pathlib import Path

import pytest

from m2po_lab.cli import main

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def transcript():
    spec = importlib.util.spec_from_file_location("transcript", ROOT / "docs" / "transcript.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_outputs_in_the_readme_are_those_of_the_program(transcript):
    assert transcript.BLOCK.search(README)
    assert transcript.rewritten(README) == README


def test_the_python_in_the_readme_prints_what_it_says(monkeypatch):
    code, output = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL).groups()
    monkeypatch.chdir(ROOT)
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(code, "README.md", "exec"), {})
    assert stream.getvalue() == output


@pytest.mark.parametrize("document", ["README.md", "ARCHITECTURE.md"])
def test_every_path_on_the_map_exists(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    (tree,) = re.findall(r"```text\n(m2po_lab/\n.*?)```", text, re.DOTALL)
    parents = {}
    found = 0
    for line in tree.splitlines():
        entry = re.match(r"( *)([\w.-]+/?)(?:\s|$)", line)
        assert entry, line
        depth, name = len(entry[1]) // 2, entry[2]
        parents[depth] = parents[depth - 1] / name if depth else ROOT / name
        assert parents[depth].exists(), line
        found += 1
    assert found > 10


def test_every_option_the_readme_names_exists(capsys):
    text = ""
    toy = (["toy", "run"], ["toy", "figure"])
    for command in ([], ["analyze"], ["convert"], ["demo"], ["launch"], *toy):
        main([*command, "--help"])
        text += capsys.readouterr().out
    known = set(re.findall(r"--[a-z][a-z-]+", text))
    assert set(re.findall(r"(?<=[ `])--[a-z][a-z-]+", README)) <= known
