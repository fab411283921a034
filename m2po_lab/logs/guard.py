"""Reading one unit of a log so that broken content ends in a counted remark or one line."""

from collections.abc import Iterator

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.detect import Unit
from m2po_lab.logs.errors import CONTENT_ERRORS, DamagedLogError, UnreadableLogError
from m2po_lab.logs.reader import Notes, ReadOptions
from m2po_lab.logs.registry import by_name


def guarded(unit: Unit, options: ReadOptions, notes: Notes) -> Iterator[TokenBatch]:
    """Batches of one unit.

    A file that is damaged before it gave a row, as one still being written, counts as a bad row.
    One that breaks later is an error, unless bad rows are to be skipped: then what it gave stays.

    Raises:
        UnreadableLogError: the unit cannot be read, or breaks in the middle.
    """
    batches = by_name(unit.format).read(unit.sources, options, notes)
    began = False
    try:
        for batch in batches:
            if batch.n_rows:
                began = True
                yield batch
    except CONTENT_ERRORS as error:
        damage = _damage(unit, error)
        if not isinstance(damage, DamagedLogError) or (began and not options.skip_bad_rows):
            raise damage from error
        notes.bad_rows += 1
        notes.remark(str(damage))


def _damage(unit: Unit, error: Exception) -> UnreadableLogError:
    """The error as one of ours; a failing file system is no damage to the file."""
    if isinstance(error, UnreadableLogError):
        return error
    place = ", ".join(source.address for source in unit.sources[:3])
    if isinstance(error, OSError) and error.errno is not None:
        return UnreadableLogError(place, f"cannot be read ({error})")
    what = f"cannot be read as {unit.format} ({type(error).__name__}: {error})"
    return DamagedLogError(place, what, "copy it again, or choose another --format")
