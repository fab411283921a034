"""How Sphinx builds the documentation; `make docs` treats every warning as an error."""

import re
import sys
from pathlib import Path
from typing import Any

import m2po_lab

sys.path.insert(0, str(Path(__file__).parent))

project = "M2PO Lab"
author = "M2PO Lab"
project_copyright = "M2PO Lab, Apache-2.0"
version = release = m2po_lab.__version__

extensions = [
    "myst_nb",
    "sphinx-mathjax-offline",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "registry_pages",
    "reference_pages",
    "tutorial_pages",
]
exclude_patterns = ["_build", "jupyter_execute"]

html_theme = "furo"
html_title = "M2PO Lab"

# Notebooks are executed and checked by `make notebooks`; the pages show the stored outputs.
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

# A name in single backticks is code, as in the sources.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"


def escape_bars(
    _app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]
) -> None:
    """Keep the |d| of docstrings an absolute value; reStructuredText reads a substitution."""
    for index, line in enumerate(lines):
        parts = re.split(r"(`+[^`]*`+)", line)
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[index] = "".join(parts)


def setup(app: Any) -> None:
    """Connect to the events of Sphinx."""
    app.connect("autodoc-process-docstring", escape_bars)
