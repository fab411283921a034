"""The notebooks as pages, with the outputs they were committed with."""

import shutil
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"

TEXT = """# Tutorials

Eight notebooks, each under two minutes on a laptop. `m2po-lab notebooks` copies them into a folder
and opens JupyterLab; the extra `notebooks` installs what they need. The sliders move there; here
they show the picture of their first position.

```{{toctree}}
:maxdepth: 1

{names}
```
"""


def setup(app: Any) -> dict[str, bool]:
    """Copy the notebooks before Sphinx looks for sources."""
    folder = Path(app.srcdir) / "tutorials"
    folder.mkdir(exist_ok=True)
    sources = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
    for old in folder.glob("*.ipynb"):
        if old.name not in {source.name for source in sources}:
            old.unlink()
    for source in sources:
        target = folder / source.name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)
    index = TEXT.format(names="\n".join(f"tutorials/{source.stem}" for source in sources))
    page = Path(app.srcdir) / "tutorials.md"
    if not page.exists() or page.read_text() != index:
        page.write_text(index)
    return {"parallel_read_safe": True}
