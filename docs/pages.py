"""What the generated pages share: cells of tables, and writing only what has changed."""

from collections.abc import Mapping
from pathlib import Path


def cell(text: str) -> str:
    """Text that a Markdown table takes as it stands."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("\n", " ")


def write_changed(folder: Path, pages: Mapping[str, str]) -> None:
    """Write every page into the folder, and only what has changed, so that rebuilds stay quick."""
    for name, text in pages.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_text() != text:
            place.write_text(text)
    known = {folder / name for name in pages}
    for stale in set(folder.rglob("*.md")) - known:
        stale.unlink()
