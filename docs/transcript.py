"""Rewrites the command outputs in README.md: `python docs/transcript.py`; `--check` only compares.

A block looks like this, and its text is replaced by what the command prints:

    <!-- output of: m2po-lab analyze LOG -->
    ```text
    ...
    ```
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- output of: (m2po-lab [^\n]*?) -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def output_of(command: str) -> str:
    """Run a `m2po-lab` command in the repository; standard output, which is no terminal."""
    arguments = command.split()[1:]
    return subprocess.run(
        [sys.executable, "-m", "m2po_lab", *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    ).stdout


def rewritten(text: str) -> str:
    """Return a document with every block replaced by what its command prints now."""
    return BLOCK.sub(lambda block: f"{block[1]}{output_of(block[2])}{block[4]}", text)


def main() -> int:
    """Rewrite README.md, or say with the status whether it is up to date."""
    before = README.read_text(encoding="utf-8")
    after = rewritten(before)
    if "--check" in sys.argv[1:]:
        return int(before != after)
    README.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
