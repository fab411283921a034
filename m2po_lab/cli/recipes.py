"""Arguments that name a full-scale run: recipe, folders, further settings."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from m2po_lab.cli.errors import UsageError
from m2po_lab.cli.values import directory

if TYPE_CHECKING:
    from full_scale.overrides import Place
    from full_scale.recipes import Recipe


def recipe_named(name: str) -> "Recipe":
    """Find a recipe.

    Raises:
        UsageError: there is none; the message names those that are spelled like it.
    """
    from difflib import get_close_matches

    from full_scale.recipes import RECIPES

    if name in RECIPES:
        return RECIPES[name]
    close = get_close_matches(name, RECIPES, n=3)
    listed = "m2po-lab launch --list shows all"
    remedy = f"did you mean {' or '.join(close)}? {listed}" if close else listed
    raise UsageError("RECIPE", f"{name!r} is unknown", remedy)


def place_of(recipe: "Recipe", *, data: Path, out: Path | None, model: str | None) -> "Place":
    """Where a run reads and writes, as absolute paths: its workers have directories of their own.

    Raises:
        UsageError: a file lies where a folder is to be.
    """
    from datetime import UTC, datetime

    from full_scale.overrides import Place

    folder = Path("runs") / recipe.name if out is None else out
    directory("--data", data)
    directory("--out", folder)
    weights = recipe.shape.hub_id if model is None else model
    local = Path(weights).expanduser()
    return Place(
        data=str(data.resolve()),
        out=str(folder.resolve()),
        model=str(local.resolve()) if local.exists() else weights,
        start=datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ"),
    )


def key_values(overrides: Iterable[str]) -> tuple[str, ...]:
    """Check that overrides look like settings.

    Raises:
        UsageError: one has no `=`.
    """
    for each in overrides:
        if "=" not in each.strip("=") and not each.startswith("~"):
            raise UsageError(
                "OVERRIDES", f"{each!r} is not key=value", "for example trainer.nnodes=2"
            )
    return tuple(overrides)
