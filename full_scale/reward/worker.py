"""What a judging process does: it limits itself, then decides.

The kernel keeps the limits: a power tower never returns to Python, where a handler would run.
"""

import logging
import resource
import signal
from pathlib import Path

from full_scale.reward.verdict import Verdict, judge

MEMORY = 1 << 30
"""A process may grow by so much, bytes; beyond it Python raises a MemoryError."""
STATM = Path("/proc/self/statm")
DEADLINES = (signal.SIGPROF, signal.SIGALRM)
"""What kills a process that has computed, or just taken, too long."""


def start(memory: int = MEMORY) -> None:
    """Load what judging takes, so that no answer pays for it, then limit the memory."""
    for deadline in DEADLINES:
        signal.signal(deadline, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, DEADLINES)
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    judge(r"\frac{1}{3}", r"\frac{2}{6}")
    if STATM.exists():  # the limit needs to know what is mapped already
        mapped = int(STATM.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + memory, mapped + memory))


def work(answer: str, truth: str, in_text: bool, cpu_seconds: float, seconds: float) -> Verdict:
    """Judge one answer, or die of it.

    Args:
        answer: as for `judge`.
        truth: as for `judge`.
        in_text: as for `judge`.
        cpu_seconds: time of a processor until SIGPROF.
        seconds: time on the clock until SIGALRM.
    """
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return judge(answer, truth, in_text=in_text)
    except (MemoryError, RecursionError):
        return Verdict.NOTHING if in_text else Verdict.WRONG
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
