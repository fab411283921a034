"""The reward under load: mixed answers, some of them hostile, from threads as verl asks for them.

python bench/reward.py --pairs 10000

Each thread asks for one answer at a time and looks at the clock, so that a time here holds waiting
for a process, judging, and the start of a new process after a death. Some processes are killed from
outside on the way. Prints one JSON object.
"""

import argparse
import hashlib
import json
import os
import signal
import threading
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import active_children
from pathlib import Path

import numpy as np

from full_scale.reward import Judges, compute_scores

TABLE = Path(__file__).parents[1] / "tests" / "data" / "reward_answers.toml"
HOSTILE = (
    "10^10^10",
    "10^{10^{10}}",
    "9^{9^{9}}",
    "2^{2024^{2023}}",
    "1000000!",
    r"\binom{10^{9}}{5\cdot 10^8}",
    r"\sum_{i=1}^{1000000} i^i",
    r"\int_0^1 \sin(x^x) dx",
    "(x+1)^{5000}",
    "(x+y+z+w)^{40}",
    "(" * 400 + "1" + ")" * 400,
    r"\frac{1}{1+" * 60 + "1" + "}" * 60,
    r"\sqrt{1+" * 100 + "2" + "}" * 100,
    "9" * 200_000,
    "+".join(["1"] * 400),
)
STEP_SECONDS, STEP_RESPONSES = 34.5, 256 * 8
"""A step of the paper on eight GPUs: its time on the clock and its responses."""
PROCESSES = 8 * 2
"""verl's default number of reward workers, and the processes of each."""


def pairs(count: int, hostile: float, seed: int) -> Iterator[tuple[str, str]]:
    """Responses of some thousand characters with the right answer, seeded."""
    rng = np.random.default_rng(seed)
    table = [
        (rf"\boxed{{{answer}}}", truth)
        for verdicts in tomllib.loads(TABLE.read_text()).values()
        for rows in verdicts.values()
        for truth, answer in rows
    ]
    for _ in range(count):
        words = "so we get $x^{2}+1$ and then " * int(rng.lognormal(4, 1))
        a, b, shift = (int(each) for each in rng.integers(1, 200, 3))
        response, truth = [
            lambda: table[rng.integers(len(table))],
            lambda: (rf"\boxed{{\frac{{{a * 6}}}{{{b * 6}}}}}", rf"\frac{{{a}}}{{{b}}}"),  # noqa: B023
            lambda: (rf"\boxed{{{a}x+{b}}}", f"{b}+{a}x"),  # noqa: B023
            lambda: (rf"\boxed{{{a / 8}}}", rf"\frac{{{a + shift}}}{{8}}"),  # noqa: B023
            lambda: (rf"\boxed{{{a}}}", f"{a}"),  # noqa: B023
            lambda: ("I do not know.", f"{a}"),  # noqa: B023
        ][rng.choice(6, p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1])]()
        if rng.random() < hostile:
            response, truth = rf"\boxed{{{HOSTILE[rng.integers(len(HOSTILE))]}}}", "7"
        yield words + response, truth


def memory() -> dict[int, int]:
    """Resident bytes of each judging process."""
    found = {}
    for child in active_children():
        try:
            pages = int(Path(f"/proc/{child.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        found[child.pid or 0] = pages * os.sysconf("SC_PAGE_SIZE")
    return found


def run(chosen: argparse.Namespace) -> dict[str, object]:
    """Judge the pairs and count what happened."""
    asked = list(pairs(chosen.pairs, chosen.hostile, chosen.seed))
    seconds: list[float] = [0.0] * len(asked)
    scores: list[dict[str, float]] = [{}] * len(asked)
    peaks: list[int] = []
    seen: set[int] = set()
    kills, lock, done = 0, threading.Lock(), 0
    with Judges(chosen.workers, cpu_seconds=chosen.cpu_seconds, seconds=chosen.seconds) as judges:
        compute_scores([""], [asked[0][0]], [asked[0][1]], judges=judges)

        def one(index: int) -> None:
            nonlocal kills, done
            response, truth = asked[index]
            began = time.perf_counter()
            (scores[index],) = compute_scores([""], [response], [truth], judges=judges)
            seconds[index] = time.perf_counter() - began
            with lock:
                done += 1
                if done % max(1, chosen.pairs // 10) == 0:
                    now = memory()
                    seen.update(now)
                    peaks.append(max(now.values(), default=0))
                if chosen.kill_every and done % chosen.kill_every == 0:
                    victim = next(iter(memory()))
                    os.kill(victim, signal.SIGKILL)
                    kills += 1

        began, cpu = time.perf_counter(), os.times()
        with ThreadPoolExecutor(chosen.workers) as threads:
            list(threads.map(one, range(len(asked))))
        elapsed = time.perf_counter() - began
    # Times of children count once they have ended, which the pool's end has seen to.
    spent = os.times().children_user - cpu.children_user
    spent += os.times().children_system - cpu.children_system
    cut_off = sum(score["cut_off"] for score in scores)
    a_second = len(asked) / spent
    return {
        "pairs": len(asked),
        "workers": chosen.workers,
        "deadline_cpu_seconds": chosen.cpu_seconds,
        "deadline_seconds": chosen.seconds,
        "scores": {
            name: sum(s["score"] == v for s in scores)
            for name, v in (("1", 1.0), ("0.1", 0.1), ("0", 0.0))
        },
        "cut_off": int(cut_off),
        "killed_from_outside": kills,
        "processes_seen": len(seen),
        "seconds": elapsed,
        "pairs_a_second": len(asked) / elapsed,
        "cpu_seconds": spent,
        "pairs_a_cpu_second": a_second,
        "wait_seconds": {f"p{q}": float(np.percentile(seconds, q)) for q in (50, 90, 99, 100)},
        "largest_process_mb": [round(peak / 2**20) for peak in peaks],
        "digest": hashlib.sha256(json.dumps(scores).encode()).hexdigest()[:16],
        "step": {
            "responses": STEP_RESPONSES,
            "seconds": STEP_SECONDS,
            "processes": PROCESSES,
            "share": STEP_RESPONSES / a_second / PROCESSES / STEP_SECONDS,
        },
    }


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--hostile", type=float, default=0.002, help="share of hostile answers")
    parser.add_argument("--kill-every", type=int, default=1000, help="answers between two kills")
    parser.add_argument("--cpu-seconds", type=float, default=2.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    print(json.dumps(run(parser.parse_args(argv)), indent=2))


if __name__ == "__main__":
    main()
