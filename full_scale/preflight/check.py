"""What one check of a job found."""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How a check ended."""

    OK = "ok"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: what was looked at.
        status: how it ended; what could not be looked at is never ok.
        found: what is there; for what was not checked, why.
        remedy: what to do about a failure.
    """

    name: str
    status: Status
    found: str
    remedy: str = ""

    def __post_init__(self) -> None:
        """Hold every failure to its remedy.

        Raises:
            ValueError: a failure without one.
        """
        if self.status is Status.FAILED and not self.remedy:
            raise ValueError(f"{self.name} failed without a remedy: {self.found}")


class ProblemError(Exception):
    """What keeps a check from going on, and what to do about it.

    Args:
        found: what is there.
        remedy: what to do.
    """

    def __init__(self, found: str, remedy: str) -> None:
        """Keep both for the report."""
        super().__init__(f"{found}; {remedy}")
        self.found, self.remedy = found, remedy


def ok(name: str, found: str) -> Check:
    """Report what is as it should be."""
    return Check(name, Status.OK, found)


def failed(name: str, found: str, remedy: str) -> Check:
    """Report what would stop the job, or make it mean something else."""
    return Check(name, Status.FAILED, found, remedy)


def not_checked(name: str, why: str) -> Check:
    """Report what could not be looked at here."""
    return Check(name, Status.NOT_CHECKED, why)
