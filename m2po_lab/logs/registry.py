"""READERS: every format, in the order in which a file is tried against them."""

from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.jsonlines import JsonLines
from m2po_lab.logs.native import Native
from m2po_lab.logs.reader import Reader
from m2po_lab.logs.readers.columnar_text import MsSwift, Roll
from m2po_lab.logs.readers.martingale import Martingale
from m2po_lab.logs.readers.metric_files import MetricFile
from m2po_lab.logs.readers.nemo_rl import NemoRL
from m2po_lab.logs.readers.prime_rl import PrimeRL
from m2po_lab.logs.readers.skyrl import SkyRL
from m2po_lab.logs.readers.slime import Slime
from m2po_lab.logs.readers.tables import Table, Trl
from m2po_lab.logs.readers.text_dumps import AReaL, Atropos, LoggingBoard, OpenInstruct
from m2po_lab.logs.readers.trinity import Trinity
from m2po_lab.logs.readers.verl_batch import VerlDataProto, VerlTransferQueue
from m2po_lab.logs.readers.verl_generations import VerlGenerations

READERS: tuple[Reader, ...] = (
    Native(),
    Trl(),
    Table(),
    VerlDataProto(),
    VerlTransferQueue(),
    Slime(),
    SkyRL(),
    Martingale(),
    Trinity(),
    PrimeRL(),
    NemoRL(),
    OpenInstruct(),
    AReaL(),
    VerlGenerations(),
    MsSwift(),
    Roll(),
    Atropos(),
    LoggingBoard(),
    JsonLines(),
    MetricFile(),
)
"""Formats with a mark of their own first; the generic ones last."""


def by_name(name: str) -> Reader:
    """Return the reader that `--format` names.

    Raises:
        UnreadableLogError: there is none of that name; the message lists them.
    """
    for reader in READERS:
        if reader.name == name:
            return reader
    names = ", ".join(sorted({reader.name for reader in READERS}))
    raise UnreadableLogError("--format", f"no format is called {name!r}", f"auto or one of {names}")
