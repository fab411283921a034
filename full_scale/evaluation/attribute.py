"""Which set and problem a sample is of: by prepared data, by its row, by the name of its file."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from full_scale.data.manifest import read as read_manifest
from full_scale.data.rows import key
from full_scale.data.sets import SPELLINGS, known
from full_scale.errors import UnusableError
from full_scale.evaluation.generations import Sample

_ANY = "|".join(map(re.escape, sorted(SPELLINGS, key=len, reverse=True)))
_NAMED = re.compile(rf"(?<![a-z0-9])({_ANY})(?![a-z0-9])")


class Prepared:
    """Problems of a folder that `m2po-lab data prepare` filled, found by what a model was given."""

    def __init__(self, folder: Path) -> None:
        """Read the questions.

        Args:
            folder: the folder.

        Raises:
            UnusableError: it was not prepared.
        """
        manifest = read_manifest(folder)
        if not manifest["sets"]:
            remedy = f"m2po-lab data prepare --out {folder}"
            raise UnusableError(str(folder), "holds no prepared set", remedy)
        self._by_truth: defaultdict[str, list[tuple[str, Sample]]] = defaultdict(list)
        for name, entry in manifest["sets"].items():
            for row in pq.read_table(folder / entry["file"]).to_pylist():
                truth = row["reward_model"]["ground_truth"]
                problem = Sample(
                    place=entry["file"],
                    dataset=name,
                    problem=str(row["extra_info"]["index"]),
                    prompt=row["question"],
                    response=None,
                    truth=truth,
                    right=None,
                    step=None,
                )
                self._by_truth[truth].append((key(row["question"]), problem))
        self._all = [each for problems in self._by_truth.values() for each in problems]
        self._found: dict[tuple[str, str | None], Sample | None] = {}

    def find(self, sample: Sample) -> Sample | None:
        """The problem whose question is in a prompt, the longest of several; None without one."""
        asked = (sample.problem, sample.truth)
        if asked not in self._found:
            text = key(sample.prompt or "")
            # Those with the same truth first: they are few.
            same = self._by_truth.get(sample.truth or "", [])
            matches = _asked(same, text) or _asked(self._all, text)
            self._found[asked] = max(matches, key=lambda each: len(each[0]))[1] if matches else None
        return self._found[asked]


def _asked(problems: Sequence[tuple[str, Sample]], text: str) -> list[tuple[str, Sample]]:
    return [each for each in problems if each[0] in text]


def attributed(
    samples: Iterable[Sample], data: Prepared | None = None, dataset: str | None = None
) -> Iterator[Sample]:
    """Give every sample the name of its set, and where it can be found its problem and truth.

    Args:
        samples: as read.
        data: prepared data; what verl dumps does not say which set it is of.
        dataset: set of all samples that say nothing themselves.

    Raises:
        UnusableError: a sample that could be of any set.
    """
    for sample in samples:
        problem = data.find(sample) if data else None
        if problem is not None:
            yield replace(
                sample, dataset=problem.dataset, problem=problem.problem, truth=problem.truth
            )
            continue
        said = sample.dataset or dataset or named_in(sample.place)
        if said is None:
            what = "is of no prepared set" if data else "does not say which set it is of"
            by_data = "" if data else "--data FOLDER finds it, "
            raise UnusableError(sample.place, what, f"{by_data}--set NAME names it")
        chosen = known(said)
        yield replace(sample, dataset=chosen.name if chosen else said)


def named_in(place: str) -> str | None:
    """Set that a path is named after, as in samples_aime24_2025-10-01.jsonl."""
    found = _NAMED.findall(place.lower())
    return found[-1] if found else None
