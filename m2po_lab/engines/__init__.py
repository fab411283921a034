"""Where a scan runs: this process or a pool of processes over the files; the same Analysis."""

from collections.abc import Callable, Mapping

from m2po_lab.analysis import Analysis, Options
from m2po_lab.engines.growing import Growing as Growing
from m2po_lab.engines.local import local as local
from m2po_lab.engines.process import process as process
from m2po_lab.engines.watch import Stop as Stop
from m2po_lab.engines.watch import Watch as Watch
from m2po_lab.engines.watch import unseen as unseen
from m2po_lab.logs.open import Log

ENGINES: Mapping[str, Callable[[Log, Options, Watch], Analysis]] = {
    "local": local,
    "process": process,
}
"""Name of an engine, as `--engine` takes it -> the engine."""
