"""The commands of `m2po-lab` and the one place where an exception becomes an exit status.

Nothing heavy is imported here: a command loads what it needs when it runs, so `--help` stays quick.
"""

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from m2po_lab.cli import output
from m2po_lab.cli.errors import UsageError, explained
from m2po_lab.cli.status import DONE, INTERRUPTED, UNUSABLE

COMMANDS = {
    "analyze": "Read a rollout log and say how far off-policy it is, where, and what to look at.",
    "compare": "Put runs side by side: differences with intervals, by lag, findings.",
    "convert": "Rewrite any readable log as native Parquet.",
    "data": "Published training and evaluation problems as the files that a full-scale run reads.",
    "demo": "Train a bandit on stale rollouts; analyze its log and a real one that ships with it.",
    "eval": "Say how accurate generations are, with intervals, beside the numbers of the paper.",
    "launch": "Run a recipe of the paper with verl on GPUs, after its preflight.",
    "notebooks": "Copy the tutorials into a folder and open them in JupyterLab.",
    "plan": "Say what a recipe takes: memory by part, hours, and what staleness would buy.",
    "preflight": "Check settings, data, model, workers, memory and disk before a recipe is run.",
    "toy": "Run and compare toy environments: stale rollouts in minutes on a laptop.",
}
"""Command -> its line in `--help`; the function or App of that name is in the module so called."""


def version() -> str:
    """Version of the installed package."""
    from importlib.metadata import version as installed

    return installed("m2po-lab")


app = App(
    name="m2po-lab",
    help="How stale may rollouts be, and which trust region keeps what they teach?",
    version=version,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
for _name, _help in COMMANDS.items():
    app.command(f"m2po_lab.cli.{_name}:{_name}", name=_name, help=_help)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: arguments after the program's name; None takes those of the process.

    Returns:
        0 done; 1 `--fail-on` reached; 2 unusable input or options, said in one line on standard
        error; 130 interrupted.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    output.prepare()
    try:
        status = app(arguments, print_error=False, exit_on_error=False)
        output.flush()
    except BrokenPipeError:
        output.discard()
        return DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except (CycloptsError, UsageError) as error:
        return _fail(explained(error))
    except Exception as error:
        if os.environ.get("M2PO_LAB_TRACEBACK"):
            raise
        return _fail(explained(error))
    return status if isinstance(status, int) else DONE


def _fail(message: str) -> int:
    output.warn(f"m2po-lab: {message}")
    return UNUSABLE
