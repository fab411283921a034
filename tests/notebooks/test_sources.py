"""What every notebook has, and what none may have."""

import ast
import inspect
import re
from importlib import import_module

import jupytext
import pytest

from m2po_lab.tutorials.answers import exercises
from notebooks import run

SOURCES = run.sources()
LONGEST_CELL = 24
DECIMAL = re.compile(r"(?<![\w./])\d+\.\d+(?![\w./]*/)")
CITED = re.compile(r"\(https?://[^)]*\)|(?:arXiv|[Tt]heorem|[Ss]ection) \d+\.\d+")
NUMBER = re.compile(r"(?<![\w.])(?:\d+\.\d+|\.\d+|\d+)")


def cells(source, kind):
    return [cell.source for cell in jupytext.read(source).cells if cell.cell_type == kind]


def everything(source):
    return "\n".join(cells(source, "code"))


def asked(source):
    return re.findall(r'lab\.check\("([\w-]+)"', everything(source))


def questions(exercise):
    """Source of the module that asks an exercise: its constants stand in the question."""
    module = import_module(f"m2po_lab.tutorials.exercises.{exercise.split('-')[0]}")
    return inspect.getsource(module)


@pytest.fixture(params=SOURCES, ids=lambda source: source.stem)
def source(request):
    return request.param


def test_numbers_of_notebooks_are_unique():
    numbers = [source.name[:2] for source in SOURCES]
    assert len(set(numbers)) == len(numbers) > 0


def test_a_notebook_imports_and_never_defines(source):
    tree = ast.parse(everything(source))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    assert [node.name for node in ast.walk(tree) if isinstance(node, kinds)] == []


def test_cells_are_short(source):
    assert max(len(text.splitlines()) for text in cells(source, "code")) <= LONGEST_CELL


def test_it_says_what_one_learns_what_to_watch_and_where_it_comes_from(source):
    prose = cells(source, "markdown")
    assert prose[0].startswith(f"# {source.name[:2]} ")
    assert "**You will be able to**" in prose[0]
    assert "## What to watch" in "\n".join(prose)
    assert "## References" in prose[-1]


def test_it_has_a_slider_exercises_and_assertions(source):
    code = everything(source)
    assert "lab.slide(" in code
    assert len(asked(source)) >= 2
    assert code.count("assert ") >= 3


def test_every_exercise_is_asked_once_in_one_notebook():
    names = [name for source in SOURCES for name in asked(source)]
    assert sorted(names) == sorted(exercises())


def test_decimals_in_prose_are_computed_set_or_asserted_in_the_code(source):
    prose = CITED.sub("", "\n".join(cells(source, "markdown")))
    code = everything(source) + "".join(map(questions, asked(source)))
    known = {float(number) for number in NUMBER.findall(code)}
    unknown = {n for n in DECIMAL.findall(prose) if float(n) not in known}
    assert unknown == set()


def test_the_check_of_decimals_sees_one():
    assert DECIMAL.findall("M2 is 0.25, see 2510.0116/x") == ["0.25"]
