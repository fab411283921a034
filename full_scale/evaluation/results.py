"""Results of earlier evaluations, read back for the table."""

import json
from pathlib import Path
from typing import Any

from full_scale.errors import UnusableError
from full_scale.evaluation.evaluate import SCHEMA


def read_result(path: Path) -> dict[str, Any]:
    """Read what `m2po-lab eval --json` wrote.

    Raises:
        UnusableError: it is something else, or does not say its recipe.
        OSError: it cannot be read.
    """
    try:
        found = json.loads(path.read_bytes())
        schema, recipe = found["schema"], found["recipe"]
    except (ValueError, TypeError, LookupError) as error:
        remedy = "m2po-lab eval FILES --recipe RECIPE --json RESULT writes one"
        raise UnusableError(str(path), "no result of m2po-lab eval", remedy) from error
    if schema != SCHEMA or recipe is None:
        what = f"schema {schema!r}" if schema != SCHEMA else "does not say its recipe"
        raise UnusableError(str(path), what, "evaluate again with --recipe")
    return dict(found)
