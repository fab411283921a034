"""`m2po-lab notebooks`: copies, leaves alone, opens; without JupyterLab it names the extra."""

import sys
import types

import pytest

from m2po_lab.cli import notebooks as command
from m2po_lab.tutorials import folder as shelf


def test_it_copies_every_notebook_and_prints_how_to_open_them(call, tmp_path):
    done = call("notebooks", "mine", "--print-only")
    assert done.returncode == 0
    assert "Open them with: jupyter lab mine/01_importance_weights.ipynb" in done.stdout
    names = {path.name for path in (tmp_path / "mine").glob("*.ipynb")}
    assert names == {path.name for path in shelf.notebooks()}


def test_a_changed_notebook_is_left_alone_and_named(call, tmp_path):
    call("notebooks", "mine", "--print-only")
    mine = tmp_path / "mine" / "01_importance_weights.ipynb"
    mine.write_text("my answers")
    done = call("notebooks", "mine", "--print-only")
    assert mine.read_text() == "my answers"
    assert "0 written" in done.stdout
    assert "left alone (--force replaces): 01_importance_weights.ipynb" in done.stdout
    call("notebooks", "mine", "--print-only", "--force")
    assert mine.read_bytes() == shelf.notebooks()[0].read_bytes()


def test_a_notebook_of_an_older_version_is_replaced_if_nobody_changed_it(tmp_path, monkeypatch):
    old = tmp_path / "old" / "01_importance_weights.ipynb"
    old.parent.mkdir()
    old.write_text("an older version")
    monkeypatch.setattr(shelf, "notebooks", lambda: [old])
    shelf.copy(tmp_path / "mine")
    monkeypatch.undo()
    done = shelf.copy(tmp_path / "mine")
    assert "01_importance_weights.ipynb" in done.written
    assert (tmp_path / "mine" / old.name).read_bytes() == shelf.notebooks()[0].read_bytes()


def test_a_file_that_was_never_put_there_counts_as_the_users(tmp_path):
    (tmp_path / "01_importance_weights.ipynb").write_text("mine")
    (tmp_path / shelf.RECORD).write_text("no json")
    assert shelf.copy(tmp_path).kept == ("01_importance_weights.ipynb",)


@pytest.mark.parametrize(("option", "extra"), [((), []), (("--no-browser",), ["--no-browser"])])
def test_it_opens_the_first_notebook(call, tmp_path, monkeypatch, option, extra):
    seen = []
    lab = types.ModuleType("jupyterlab.labapp")
    lab.LabApp = types.SimpleNamespace(launch_instance=lambda argv: seen.append(argv))
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", lab)
    monkeypatch.setattr(command, "NEEDED", ())
    assert call("notebooks", *option).returncode == 0
    first = tmp_path / "m2po-lab-notebooks" / "01_importance_weights.ipynb"
    assert seen == [[str(first), *extra]]


def test_without_jupyterlab_it_names_the_extra_and_copies_nothing(call, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "NEEDED", ("no_such_package",))
    done = call("notebooks", "mine")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no_such_package is not installed; pip install 'm2po-lab[notebooks]'" in done.stderr
    assert not (tmp_path / "mine").exists()


def test_a_file_in_place_of_the_folder_is_refused_in_one_line(call, tmp_path):
    (tmp_path / "mine").write_text("x")
    done = call("notebooks", "mine", "--print-only")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "mine" in done.stderr
