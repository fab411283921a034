"""Tests of the notebooks themselves; `make notebooks` runs them, with the extra they need."""

import importlib.util

if any(importlib.util.find_spec(name) is None for name in ("jupytext", "ipywidgets", "nbclient")):
    collect_ignore_glob = ["test_*.py"]
