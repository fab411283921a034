"""`m2po-lab launch`: a recipe of the paper as a run of verl."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from m2po_lab.cli import output
from m2po_lab.cli.errors import UsageError
from m2po_lab.cli.preflight import report
from m2po_lab.cli.recipes import key_values, place_of, recipe_named
from m2po_lab.cli.status import DONE, FAILED


def launch(
    recipe: str | None = None,
    /,
    *overrides: str,
    list: Annotated[bool, Parameter(negative=())] = False,
    print: Annotated[bool, Parameter(negative=())] = False,
    data: Path = Path("data"),
    out: Path | None = None,
    model: str | None = None,
    preflight: bool = True,
) -> int:
    """Run a recipe after its preflight, or print the command.

    A run that was stopped goes on from its last checkpoint when it is launched again.

    Parameters
    ----------
    recipe
        What to run.
    overrides
        Further settings of verl, key=value; they win over the recipe's.
    list
        Show the recipes.
    print
        Show the command instead of running it.
    data
        Folder that `m2po-lab data prepare` filled.
    out
        Folder of the run; runs/RECIPE by default.
    model
        Hub id or folder of the model; the recipe's by default.
    preflight
        Check the job first, and leave it if a check fails.
    """
    from full_scale.overrides import overrides as settings_of
    from full_scale.recipes import RECIPES

    if list:
        width = max(map(len, RECIPES))
        for name, each in RECIPES.items():
            output.say(f"{name:<{width}}  {each.summary}\n")
        return DONE
    if recipe is None:
        raise UsageError("RECIPE", "nothing was named", "m2po-lab launch --list shows the recipes")
    chosen, by_hand = recipe_named(recipe), key_values(overrides)
    place = place_of(chosen, data=data, out=out, model=model)
    arguments = ["-m", "verl.trainer.main_ppo", *settings_of(chosen, place), *by_hand]
    if print:
        output.say(
            " \\\n    ".join(["python -m verl.trainer.main_ppo", *map(shlex.quote, arguments[2:])])
        )
        output.say("\n")
        return DONE
    if preflight and report(chosen, place, by_hand, None) == FAILED:
        output.warn("m2po-lab: not launched, because a check failed; --no-preflight skips them")
        return FAILED
    Path(place.metrics).parent.mkdir(parents=True, exist_ok=True)
    return subprocess.run([sys.executable, *arguments]).returncode
