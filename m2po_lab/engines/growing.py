"""A log that is still being written: what is new and complete is scanned, the rest is kept."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import fsspec

from m2po_lab.analysis import Analysis, Options
from m2po_lab.engines.local import local
from m2po_lab.engines.watch import Watch
from m2po_lab.logs.detect import Unit
from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.open import Log
from m2po_lab.logs.source import Source

Key = tuple[str, str, tuple[str, ...]]
Print = tuple[tuple[int, int], ...]


@dataclass
class Growing:
    """Remembers the analysis of every file (or of files that belong together).

    A file counts when it has been the same in two looks, or was there at the first one. It is
    scanned again only if it changes; one that cannot be read is tried again when it does. The
    analysis is that of `local` on the same files: to the last digit up to `MOST_PARTS` files, with
    more but for the rounding of sums, which are then added in another order.

    Args:
        open: opens the log as it is now.
        options: what to compute.
    """

    open: Callable[[], Log]
    options: Options
    _scanned: dict[Key, tuple[Print, Analysis]] = field(default_factory=dict)
    _seen: dict[Key, Print] = field(default_factory=dict)
    _is_first: bool = True

    def refresh(self, watch: Watch) -> Analysis | None:
        """Look once.

        Returns:
            The analysis of all complete files; None if nothing has changed since the last look.
        """
        log = self.open()
        now = {_key(unit): (unit, _print(unit)) for unit in log.units if unit.sources}
        changed = [key for key in self._scanned if key not in now]
        for key in changed:
            del self._scanned[key]
        for key, (unit, print_) in now.items():
            is_still = self._is_first or self._seen.get(key) == print_
            is_known = key in self._scanned and self._scanned[key][0] == print_
            self._seen[key] = print_
            if is_still and not is_known and self._scan(log, key, unit, print_, watch):
                changed.append(key)
        self._is_first = False
        if not changed or not self._scanned:
            return None
        return self._merged(log, [now[key][0] for key in now if key in self._scanned], watch)

    def _scan(self, log: Log, key: Key, unit: Unit, print_: Print, watch: Watch) -> bool:
        """Scan one unit; return whether that succeeded."""
        part = Log([unit], log.options, log.path, is_part=True)
        try:
            analysis = local(part, self.options, watch)
        except UnreadableLogError:
            return False
        if analysis.partial:
            return False
        self._scanned[key] = (print_, analysis)
        return True

    def _merged(self, log: Log, units: list[Unit], watch: Watch) -> Analysis:
        """Merge in file order; what only all files together show needs one look at all."""
        merged = Analysis(options=self.options)
        for unit in units:
            merged.absorb(self._scanned[_key(unit)][1])
        if merged.integrity.counted_twice or merged.integrity.overruled():
            return local(Log(units, log.options, log.path), self.options, watch)
        return merged


def _key(unit: Unit) -> Key:
    return unit.path, unit.format, tuple(source.path for source in unit.sources)


def _print(unit: Unit) -> Print:
    return tuple(_size_and_time(source) for source in unit.sources)


def _size_and_time(source: Source) -> tuple[int, int]:
    """Size in bytes and time of the last change in nanoseconds, 0 where a store gives none."""
    if source.is_local:
        found = Path(source.path).stat()
        return found.st_size, found.st_mtime_ns
    info = fsspec.filesystem(source.protocol, **source.storage).info(source.path)
    return int(info["size"] or 0), 0
