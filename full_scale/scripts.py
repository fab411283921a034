"""Recipes as shell scripts: `python -m full_scale.scripts` writes full_scale/launch/*.sh anew."""

import sys
from pathlib import Path
from textwrap import wrap

from full_scale.notes import notes
from full_scale.overrides import Place, overrides
from full_scale.recipes import RECIPES, Recipe

FOLDER = Path(__file__).parent / "launch"
COMMAND = "python -m verl.trainer.main_ppo"
IN_SHELL = Place(data="$DATA", out="$OUT", model="$MODEL", start="$START")
WIDTH = 96

TEMPLATE = """\
#!/usr/bin/env bash
{header}
# Written by `python -m full_scale.scripts` from full_scale/recipes.py.
set -euo pipefail

DATA=$(realpath -m "${{DATA:-data}}")
OUT=$(realpath -m "${{OUT:-runs/{name}}}")
MODEL=${{MODEL:-{model}}}
START=$(date -u +%Y%m%dT%H%M%SZ)
[ ! -e "$MODEL" ] || MODEL=$(realpath "$MODEL")

if [ "${{PREFLIGHT:-yes}}" != no ]; then
    m2po-lab preflight {name} --data "$DATA" --out "$OUT" --model "$MODEL" "$@"
fi
mkdir -p "$OUT/metrics"
exec {command} \\
    {settings} \\
    "$@"
"""


def script(recipe: Recipe) -> str:
    """Text of the script of one recipe."""
    settings = " \\\n    ".join(map(_quoted, overrides(recipe, IN_SHELL)))
    return TEMPLATE.format(
        header="\n".join(f"# {line}" for each in notes(recipe) for line in wrap(each, WIDTH)),
        name=recipe.name,
        model=recipe.shape.hub_id,
        command=COMMAND,
        settings=settings,
    )


def _quoted(override: str) -> str:
    """Quote for the shell, which is to put in the variables of `IN_SHELL`."""
    return f'"{override}"' if any(c in override for c in "$[]'") else override


def write(folder: Path = FOLDER) -> list[Path]:
    """Write the script of every recipe, and remove those of recipes that are gone.

    Returns:
        The files that were changed or removed.
    """
    folder.mkdir(exist_ok=True)
    wanted = {folder / f"{name}.sh": script(recipe) for name, recipe in RECIPES.items()}
    changed = [path for path in folder.glob("*.sh") if path not in wanted]
    for path in changed:
        path.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            path.chmod(0o755)
            changed.append(path)
    return changed


if __name__ == "__main__":
    sys.stdout.writelines(f"{path}\n" for path in write())
