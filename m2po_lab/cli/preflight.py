"""`m2po-lab preflight`: what would stop a full-scale job, before it starts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from m2po_lab.cli import output
from m2po_lab.cli.errors import one_line
from m2po_lab.cli.recipes import key_values, place_of, recipe_named
from m2po_lab.cli.status import DONE, FAILED
from m2po_lab.cli.values import json_file

if TYPE_CHECKING:
    from full_scale.overrides import Place
    from full_scale.preflight import Check
    from full_scale.recipes import Recipe

SCHEMA = "m2po-lab/preflight/1"
WIDTH = 12


def preflight(
    recipe: str,
    /,
    *overrides: str,
    data: Path = Path("data"),
    out: Path | None = None,
    model: str | None = None,
    json: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
) -> int:
    """Check versions, settings, data, model, workers, memory and disk of a job; 1 if any failed.

    Parameters
    ----------
    recipe
        What is to run: `m2po-lab launch --list` lists the recipes.
    overrides
        Further settings of verl, key=value, as they will be given to launch.
    data
        Folder that `m2po-lab data prepare` filled.
    out
        Folder of the run; runs/RECIPE by default.
    model
        Hub id or folder of the model; the recipe's by default.
    json
        File to write the checks to as JSON; - is standard output, which then holds nothing else.
    """
    json_file("--json", json)
    chosen = recipe_named(recipe)
    place = place_of(chosen, data=data, out=out, model=model)
    return report(chosen, place, key_values(overrides), json)


def report(recipe: "Recipe", place: "Place", by_hand: tuple[str, ...], json: str | None) -> int:
    """Run the checks, print each as it is done, and say whether one failed."""
    from full_scale.preflight import Status, preflight

    quiet = json is not None and output.is_stdout(json)
    done = []
    for check in preflight(recipe, place, by_hand):
        done.append(check)
        if not quiet:
            output.say(_line(check))
    failures = sum(check.status is Status.FAILED for check in done)
    if json is not None:
        _write(json, recipe.name, done)
    if not quiet:
        missed = sum(check.status is Status.NOT_CHECKED for check in done)
        output.say(f"\n{len(done)} checks: {failures} failed, {missed} not checked\n")
    return FAILED if failures else DONE


def _line(check: "Check") -> str:
    text = f"{check.status:<{WIDTH}} {check.name}: {one_line(check.found)}\n"
    return text + (f"{'':<{WIDTH}} -> {one_line(check.remedy)}\n" if check.remedy else "")


def _write(path: str, recipe: str, checks: list["Check"]) -> None:
    from dataclasses import asdict

    import orjson

    from full_scale.preflight import Status

    document: dict[str, Any] = {
        "schema": SCHEMA,
        "recipe": recipe,
        "failed": sum(check.status is Status.FAILED for check in checks),
        "checks": [asdict(check) for check in checks],
    }
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"
    if output.is_stdout(path):
        output.say(text)
    else:
        Path(path).write_text(text, encoding="utf-8")
