"""Run the notebooks from their sources; check the committed ones, or write them anew.

    python notebooks/run.py            # run all; fail if a committed one is not up to date
    python notebooks/run.py --write 01 # run those whose name starts so and write the .ipynb

A committed notebook is up to date if its cells are those of the source and its outputs are those of
the run: the same text, where numbers may differ in the last digits that another processor rounds
otherwise, and the same kinds of pictures in the same cells.
"""

import argparse
import os
import re
import resource
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
SECONDS = 1800
"""Time limit of a cell."""
LONGEST = 120.0
"""Processor seconds that a whole notebook may take; other work on the machine does not count."""
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?")
RELATIVE, ABSOLUTE = 0.02, 0.011
"""Numbers of outputs agree within these."""
IDENTIFIER = re.compile(r"\b[0-9a-f]{32}\b")
"""Of ipywidgets' models; random, so that a written notebook gets numbers instead."""


def sources(chosen: Sequence[str] = ()) -> list[Path]:
    """Sources of the notebooks whose names start with one of `chosen`; of all for none."""
    found = sorted(HERE.glob("[0-9][0-9]_*.py"))
    return [p for p in found if not chosen or any(p.name.startswith(c) for c in chosen)]


def execute(source: Path) -> tuple[Any, float]:
    """Run a notebook in a fresh kernel; return it with outputs, and the kernel's CPU seconds."""
    notebook = jupytext.read(source)
    _name_cells(notebook)
    # Sums of floats depend on how many threads share them.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    before = _children()
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(HERE)}},
        startup_timeout=SECONDS,
    )
    client.execute()
    return tidy(notebook), _children() - before


def _children() -> float:
    """Processor seconds of all kernels that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _name_cells(notebook: Any) -> None:
    """Give every cell an id that follows from its text, so that a new run changes none."""
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        mark = sha256(cell.source.encode()).hexdigest()[:8]
        seen[mark] = seen.get(mark, 0) + 1
        cell["id"] = mark if seen[mark] == 1 else f"{mark}-{seen[mark]}"


def tidy(notebook: Any) -> Any:
    """Take out what differs from run to run though nothing has changed."""
    notebook.metadata.pop("language_info", None)
    text = nbformat.writes(notebook)
    marks = dict.fromkeys(IDENTIFIER.findall(text))
    for i, mark in enumerate(marks):
        text = text.replace(mark, f"{i:032x}")
    return nbformat.reads(text, as_version=4)


def differences(committed: Any, ran: Any) -> Iterator[str]:
    """Say what of a committed notebook is not up to date."""
    old = [(cell.cell_type, cell.source) for cell in committed.cells]
    new = [(cell.cell_type, cell.source) for cell in ran.cells]
    if old != new:
        yield "its cells are not those of the source"
        return
    for i, (before, after) in enumerate(zip(committed.cells, ran.cells, strict=True)):
        was, now = outputs(before), outputs(after)
        if [kinds for kinds, _ in was] != [kinds for kinds, _ in now]:
            yield f"cell {i}: outputs are of other kinds"
            continue
        for (_, one), (_, other) in zip(was, now, strict=True):
            if not same(one, other):
                yield f"cell {i}: {one!r} is now {other!r}"


def outputs(cell: Any) -> list[tuple[tuple[str, ...], str]]:
    """Kinds and text of each output of a cell."""
    found = []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        text = output.get("text") or data.get("text/markdown") or data.get("text/plain") or ""
        found.append(((output.output_type, *sorted(data)), text))
    return found


def same(one: str, other: str) -> bool:
    """Whether two texts say the same, up to the last digits of their numbers."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(map(float, NUMBER.findall(one)), map(float, NUMBER.findall(other)), strict=True)
    return all(abs(a - b) <= ABSOLUTE + RELATIVE * abs(b) for a, b in pairs)


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; 1 if something is not up to date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="first letters of their names; all by default")
    parser.add_argument("--write", action="store_true", help="write the .ipynb files")
    options = parser.parse_args(arguments)
    stale = 0
    for source in sources(options.names):
        place = source.with_suffix(".ipynb")
        ran, seconds = execute(source)
        print(f"{source.name}: {seconds:.0f} s of one processor", flush=True)
        problems = [f"takes over {LONGEST:g} s"] if seconds > LONGEST else []
        if options.write:
            nbformat.write(ran, place)
        elif place.exists():
            problems += differences(nbformat.read(place, as_version=4), ran)
        else:
            problems.append("is missing")
        for problem in problems:
            print(f"  {place.name}: {problem}", flush=True)
        stale += bool(problems)
    if stale:
        print(f"{stale} not up to date: python notebooks/run.py --write", flush=True)
    return int(stale > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
