"""`m2po-lab notebooks`: the tutorials in JupyterLab."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from m2po_lab.cli import output
from m2po_lab.cli.errors import UsageError
from m2po_lab.cli.values import directory

if TYPE_CHECKING:
    from m2po_lab.tutorials.folder import Copied

NEEDED = ("jupyterlab", "ipywidgets", "ipykernel")
EXTRA = "pip install 'm2po-lab[notebooks]', or --print-only for the files alone"


def notebooks(
    folder: Path = Path("m2po-lab-notebooks"),
    /,
    *,
    no_browser: Annotated[bool, Parameter(negative=())] = False,
    print_only: Annotated[bool, Parameter(negative=())] = False,
    force: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Copy the tutorials into a folder and open them in JupyterLab; Ctrl-C ends it.

    Parameters
    ----------
    folder
        Where to put them; notebooks you have changed there are left alone.
    no_browser
        Start JupyterLab and print its address, but open no window.
    print_only
        Copy, print the command that opens them, and stop.
    force
        Replace notebooks you have changed.
    """
    directory("FOLDER", folder)
    if not print_only and (missing := [name for name in NEEDED if find_spec(name) is None]):
        raise UsageError("notebooks", f"{', '.join(missing)} is not installed", EXTRA)
    from m2po_lab.tutorials.folder import copy

    done = copy(folder, force=force)
    output.say(_summary(folder, done))
    first = folder / min((*done.written, *done.kept, *done.same))
    if print_only:
        output.say(f"Open them with: jupyter lab {first}\n")
        return 0
    _open(first, ["--no-browser"] if no_browser else [])
    return 0


def _summary(folder: Path, done: "Copied") -> str:
    there = len(done.written) + len(done.kept) + len(done.same)
    lines = [f"{there} notebooks in {folder}: {len(done.written)} written."]
    if done.kept:
        lines.append(f"Changed by you and left alone (--force replaces): {', '.join(done.kept)}")
    return "\n".join(lines) + "\n"


def _open(first: Path, options: list[str]) -> None:
    """Run JupyterLab in this process until it is shut down."""
    lab: Any = import_module("jupyterlab.labapp")
    lab.LabApp.launch_instance(argv=[str(first.resolve()), *options])
