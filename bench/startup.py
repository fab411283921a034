"""What starting the command costs, in bare Python starts, each command in turn in one run.

Side by side because the seconds of a shared machine mean nothing: a round starts every command
once, and the median over the rounds of its time over the bare start's is what counts. The limit on
`m2po-lab --help` is 25 bare starts.

    python bench/startup.py [--rounds 15]
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

LOG = Path(__file__).parents[1] / "m2po_lab" / "data" / "trl_grpo_bf16.jsonl"
COMMAND = [sys.executable, "-m", "m2po_lab"]
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "python -c 'import numpy'": [sys.executable, "-c", "import numpy"],
    "python -c 'import m2po_lab.core'": [sys.executable, "-c", "import m2po_lab.core"],
    "m2po-lab --help": [*COMMAND, "--help"],
    "m2po-lab analyze, 128 rows": [*COMMAND, "analyze", str(LOG), "--quiet"],
}


def seconds(command: list[str]) -> float:
    """Run a command to its end and return how long that took."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    times = [{name: seconds(command) for name, command in COMMANDS.items()} for _ in range(rounds)]
    bare = next(iter(COMMANDS))
    print("| command | times a bare start | smallest | largest |")
    print("|---|---|---|---|")
    for name in COMMANDS:
        ratios = [round_[name] / round_[bare] for round_ in times]
        print(
            f"| {name} | {statistics.median(ratios):.1f} | {min(ratios):.1f} | {max(ratios):.1f} |"
        )


if __name__ == "__main__":
    main()
