"""`m2po-lab plan`: what a recipe takes, before a GPU is rented."""

from collections.abc import Iterable
from typing import Annotated

from cyclopts import Parameter

from m2po_lab.cli import output
from m2po_lab.cli.errors import UsageError
from m2po_lab.cli.recipes import recipe_named
from m2po_lab.cli.status import DONE
from m2po_lab.cli.values import json_file


def plan(
    recipe: str,
    /,
    *assumptions: str,
    json: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
) -> int:
    """Show memory of a GPU by part, the stale queue, hours, and what staleness buys.

    Parameters
    ----------
    recipe
        What to plan; `m2po-lab launch --list` shows them.
    assumptions
        Other values than the plan assumes, NAME=VALUE, such as mfu=0.4 response_mean=900.
    json
        File to write the plan to as JSON, in bytes and seconds; - is standard output, which then
        holds nothing else.
    """
    from full_scale.plan import Assumptions, changed, document, text
    from full_scale.plan import plan as planned
    from m2po_lab.report.document import dumps, write_json

    json_file("--json", json)
    found = planned(recipe_named(recipe), changed(Assumptions(), _values(assumptions)))
    if json is not None and output.is_stdout(json):
        output.say(dumps(document(found)))
        return DONE
    if json is not None:
        write_json(json, document(found))
    output.say(text(found))
    return DONE


def _values(assumptions: Iterable[str]) -> dict[str, str]:
    values = {}
    for each in assumptions:
        name, equals, value = each.partition("=")
        if not (name and equals and value):
            raise UsageError("ASSUMPTIONS", f"{each!r} is not NAME=VALUE", "for example mfu=0.4")
        values[name] = value
    return values
