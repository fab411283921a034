"""Published files from the Hugging Face hub, kept in its cache."""

import sys
from collections.abc import Sequence
from pathlib import Path

from full_scale.data.files import SUFFIXES
from full_scale.data.sets import DataSet
from full_scale.errors import UnusableError

PATTERNS = [f"*{suffix}" for suffix in SUFFIXES]


class MissingError(UnusableError):
    """A set that has to be brought by hand.

    Args:
        chosen: the set.
        problem: why the hub does not give it.
    """

    def __init__(self, chosen: DataSet, problem: str) -> None:
        """Say how to bring it."""
        super().__init__(chosen.name, problem, by_hand([chosen.hub_id]))
        self.chosen = chosen
        self.problem = problem


def download(chosen: DataSet) -> tuple[Path, str]:
    """Fetch a set, or take what the cache holds of it.

    Returns:
        Folder of the files, and the revision of the repository.

    Raises:
        MissingError: the hub cannot be reached, or refuses; the remedy is to bring the files.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.utils import disable_progress_bars
    except ImportError as error:
        problem = "needs huggingface_hub to reach the hub"
        raise MissingError(chosen, problem) from error
    if sys.stderr is None or not sys.stderr.isatty():
        disable_progress_bars()
    try:
        folder = snapshot_download(chosen.hub_id, repo_type="dataset", allow_patterns=PATTERNS)
    # Which exceptions mean "no network" changes with the version of three libraries below it.
    except Exception as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        problem = f"{chosen.hub_id} cannot be had from the hub ({reason[0][:120]})"
        raise MissingError(chosen, problem) from error
    return Path(folder), Path(folder).name


def by_hand(hub_ids: Sequence[str]) -> str:
    """What to do on a machine without a network."""
    return (
        "on a machine with a network: for id in "
        + " ".join(hub_ids)
        + "; do hf download $id --repo-type dataset --local-dir hub/$id; done, "
        "bring the folder hub here and add --source hub"
    )
