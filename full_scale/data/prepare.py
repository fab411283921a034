"""Published data -> train.parquet and test.parquet for verl, set by set, each done once."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from full_scale.data import manifest as manifests
from full_scale.data.files import rows, source_hash, sources
from full_scale.data.hub import MissingError, by_hand, download
from full_scale.data.lengths import Lengths
from full_scale.data.local import Given
from full_scale.data.manifest import Manifest
from full_scale.data.part import Settings, build
from full_scale.data.rows import SCHEMA, key
from full_scale.data.sets import EVALUATION, SETS, TRAIN, TRAINING, DataSet
from full_scale.errors import UnusableError
from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.source import Source

PARTS = "sets"
DEFAULT = ("deepscaler", *EVALUATION)
FILES = {"train.parquet": TRAINING, "test.parquet": EVALUATION}

Found = tuple[list[Source], dict[str, Any]]
"""Files of a set, and what the manifest says of where they came from."""
Progress = Callable[[str, str], None]


def prepare(
    folder: Path,
    names: Sequence[str] = DEFAULT,
    given: Given | None = None,
    settings: Settings | None = None,
    progress: Progress = lambda name, state: None,
) -> Manifest:
    """Fill a folder with `train.parquet`, `test.parquet`, the sets apart, and a manifest.

    A set that was made from the same files with the same settings is not made again. One that
    cannot be had does not keep the others from being made.

    Args:
        folder: where to write; a folder that was prepared before is completed.
        names: sets of `SETS`; those in the folder already stay part of it.
        given: local files; a set that is not among them comes from the hub.
        settings: how rows are made.
        progress: called with a set and what became of it.

    Returns:
        The manifest.

    Raises:
        UnusableError: sets that cannot be had, or the folder holds something else.
        UnreadableLogError: a file that cannot be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    maker = _Maker(folder, given or Given(), settings or Settings())
    missing = []
    # Evaluation sets come first in the table: training has to stay clear of them.
    for name in (*EVALUATION, *TRAINING):
        if name not in names and name not in maker.manifest["sets"]:
            continue
        try:
            progress(name, maker.make(SETS[name]))
        except MissingError as error:
            progress(name, str(error))
            missing.append(error)
    if missing:
        raise _together(missing)
    maker.merge()
    return maker.manifest


def _together(missing: Sequence[MissingError]) -> UnusableError:
    """One line for all sets that have to be brought by hand."""
    names = ", ".join(error.chosen.name for error in missing)
    remedy = by_hand([error.chosen.hub_id for error in missing])
    return UnusableError(names, missing[0].problem, remedy)


class _Maker:
    """Makes the sets of one folder, and knows which are done."""

    def __init__(self, folder: Path, given: Given, settings: Settings) -> None:
        self.folder = folder
        self.given = given
        self.settings = settings
        self.lengths = Lengths(settings.tokenizer)
        self.manifest = manifests.read(folder)
        manifests.sweep(folder)

    def make(self, chosen: DataSet) -> str:
        """Make a set, or leave the one that is there; say which."""
        before = self.manifest["sets"].get(chosen.name)
        found = self._local(chosen, before)
        others = self._others(chosen)
        made_with = self._made_with(chosen, others)
        if before and self._is_done(before, made_with, found):
            return "done before"
        files, source = found or _from_hub(chosen)
        published = (row for file in files for row in rows(file))
        elsewhere = {question: name for name in others for question in self._keys(name)}
        table, report = build(chosen, published, self.settings, self.lengths, elsewhere)
        file = f"{PARTS}/{chosen.name}.parquet"
        written = manifests.write_table(self.folder / file, table)
        self.manifest["sets"][chosen.name] = {
            "file": file,
            "split": chosen.split,
            **written,
            "source": source,
            "made_with": made_with,
            **report,
        }
        manifests.write(self.folder, self.manifest)
        return f"{table.num_rows:,} of {report['read']:,} rows"

    def _local(self, chosen: DataSet, before: Mapping[str, Any] | None) -> Found | None:
        """Local files of a set: those that were named, else those it was made from."""
        path = self.given.path(chosen)
        if path is not None:
            return _read_local(path, chosen)
        recorded = before and before["source"].get("path")
        try:
            return _read_local(recorded, chosen) if recorded else None
        except UnreadableLogError:
            return None

    def _others(self, chosen: DataSet) -> list[str]:
        """Sets whose problems a training set is not to repeat."""
        if chosen.split != TRAIN:
            return []
        before = TRAINING[: TRAINING.index(chosen.name)]
        return [name for name in (*EVALUATION, *before) if name in self.manifest["sets"]]

    def _made_with(self, chosen: DataSet, others: Sequence[str]) -> dict[str, Any]:
        settings = self.settings
        return {
            "instruction": settings.instruction,
            "max_prompt": settings.max_prompt,
            "tokenizer": settings.tokenizer,
            "keep_overlap": settings.keep_overlap if chosen.split == TRAIN else None,
            "compared_with": {name: self.manifest["sets"][name]["sha256"] for name in others},
        }

    def _is_done(
        self, before: Mapping[str, Any], made_with: Mapping[str, Any], found: Found | None
    ) -> bool:
        same_source = found is None or found[1]["files"] == before["source"]["files"]
        same = same_source and before["made_with"] == made_with
        return same and manifests.is_intact(self.folder / before["file"], before)

    def _keys(self, name: str) -> list[str]:
        path = self.folder / self.manifest["sets"][name]["file"]
        return [
            key(text) for text in pq.read_table(path, columns=["question"])["question"].to_pylist()
        ]

    def merge(self) -> None:
        """Write the files that verl reads, where the sets in them have changed."""
        for name, order in FILES.items():
            made_of = {
                each: {
                    "sha256": self.manifest["sets"][each]["sha256"],
                    "copies": self.settings.repeat.get(each, SETS[each].repeat),
                }
                for each in order
                if each in self.manifest["sets"]
            }
            before = self.manifest["files"].get(name)
            done = before and before["made_of"] == made_of
            if not made_of or (done and manifests.is_intact(self.folder / name, before)):
                continue
            parts = [
                pq.read_table(self.folder / PARTS / f"{each}.parquet", columns=SCHEMA.names)
                for each, entry in made_of.items()
                for _ in range(entry["copies"])
            ]
            written = manifests.write_table(self.folder / name, pa.concat_tables(parts))
            self.manifest["files"][name] = {**written, "made_of": made_of}
            manifests.write(self.folder, self.manifest)


def _read_local(path: str, chosen: DataSet) -> Found:
    files = sources(path, chosen.hub_split)
    where = str(Path(path).resolve()) if Path(path).exists() else path
    return files, {"kind": "local", "path": where, "files": _hashes(files)}


def _from_hub(chosen: DataSet) -> Found:
    folder, revision = download(chosen)
    files = sources(str(folder), chosen.hub_split)
    source = {"kind": "hub", "id": chosen.hub_id, "revision": revision, "files": _hashes(files)}
    return files, source


def _hashes(files: Sequence[Source]) -> dict[str, str]:
    return {PurePosixPath(file.path).name: source_hash(file) for file in files}
