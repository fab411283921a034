"""Full-scale commands: a package that is not installed is named in one line."""

from collections.abc import Iterator
from contextlib import contextmanager

from m2po_lab.cli.errors import UsageError


@contextmanager
def usable(command: str) -> Iterator[None]:
    """Say what is missing and how to install it.

    Args:
        command: as typed.

    Raises:
        UsageError: a package of the extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] in ("m2po_lab", "full_scale"):
            raise
        remedy = "pip install 'm2po-lab[full-scale]'"
        raise UsageError(command, f"needs {error.name}", remedy) from error
