"""Rules of the tree that no linter knows."""

import ast
import re
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

import m2po_lab

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("m2po_lab", "toy_envs", "full_scale")
LONGEST_FILE = 400
HEAVY = ("torch", "pandas", "pyarrow", "scipy", "numba", "matplotlib")
# The project describes itself, not the place where it was written.
FOREIGN = re.compile(
    r"(?<![\w.~-])/(work|root)/|sub-?agent|(?<![\w-])shared/(data|reference|hooks|[A-Z]+\.md)"
    r"|pythonhosted\.org|\bpypi\.org"
)


def tracked(*patterns: str) -> list[Path]:
    """List the files under version control that still exist."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = [ROOT / name for name in listing.split("\0") if name]
    found = [path for path in paths if path.is_file()]
    assert found, f"no tracked file matches {patterns}"
    return found


def text_of(path: Path) -> str | None:
    """Read a file as text; None if it is not text."""
    data = path.read_bytes()
    return None if b"\0" in data[:8000] else data.decode("utf-8", errors="replace")


def prints(source: str) -> list[int]:
    """Give the line of each call of the builtin print."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]


def loaded_by(statement: str, modules: tuple[str, ...]) -> list[str]:
    """Run a statement in a fresh interpreter and name which of the modules it loaded."""
    code = f"import sys\n{statement}\nprint(*[m for m in {modules!r} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return result.stdout.split()


def test_no_source_file_is_longer_than_four_hundred_lines():
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in tracked("*.py")
    }
    assert {name: n for name, n in lengths.items() if n > LONGEST_FILE} == {}


def test_libraries_never_print():
    sources = tracked(*(f"{library}/*.py" for library in LIBRARIES))
    calls = {
        str(path.relative_to(ROOT)): lines
        for path in sources
        if (lines := prints(path.read_text(encoding="utf-8")))
    }
    assert calls == {}


def test_the_print_check_sees_a_print():
    assert prints("x = 1\nprint(x)\nconsole.print(x)\n") == [2]


def test_no_file_names_the_place_where_it_was_written():
    hits = [
        f"{path.relative_to(ROOT)}: {match.group()!r}"
        for path in tracked()
        if (text := text_of(path)) is not None and (match := FOREIGN.search(text))
    ]
    assert hits == []


@pytest.mark.parametrize(
    ("document", "needed"),
    [("README.md", {"demo", "test"}), ("CONTRIBUTING.md", {"setup", "test", "lint", "docs"})],
)
def test_documents_name_the_commands_and_only_targets_that_exist(document, needed):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, flags=re.MULTILINE))
    text = (ROOT / document).read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, flags=re.MULTILINE))
    assert needed <= named <= targets


def test_the_readme_shows_the_command_on_the_users_own_log():
    assert "m2po-lab analyze" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_core_loads_arrays_and_nothing_heavier():
    use_every_name = "import m2po_lab.core as core; [getattr(core, name) for name in core.__all__]"
    assert loaded_by(use_every_name, HEAVY) == []


def test_the_check_of_loaded_modules_sees_a_module():
    assert loaded_by("import scipy", HEAVY) == ["scipy"]


def test_the_package_alone_loads_no_numpy():
    assert loaded_by("import m2po_lab", ("numpy", *HEAVY)) == []


def test_every_lazy_name_resolves_and_no_other_does():
    for name in m2po_lab.__all__:
        assert getattr(m2po_lab, name) is not None
    assert set(m2po_lab.__all__) <= set(dir(m2po_lab))
    with pytest.raises(AttributeError, match="'m2po_lab' has no attribute 'analyse'"):
        m2po_lab.analyse  # noqa: B018


def test_the_version_is_the_installed_one():
    assert m2po_lab.__version__ == version("m2po-lab")


def test_the_wheel_carries_every_file_of_the_packages(tmp_path):
    expected = {str(p.relative_to(ROOT)) for p in tracked(*LIBRARIES)}
    expected |= {f"m2po_lab/tutorials/notebooks/{p.name}" for p in tracked("notebooks/*.ipynb")}
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert expected - set(archive.namelist()) == set()
