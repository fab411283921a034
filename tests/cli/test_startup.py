import subprocess
import sys
import time

from tests.cli.conftest import REAL, START, environment

HEAVY = ("numpy", "pyarrow", "pandas", "scipy", "matplotlib", "seaborn", "torch", "numba", "jinja2")
PLOTTING = ("matplotlib", "seaborn", "pandas", "torch")
TIMES_A_BARE_START = 25


def _seconds(command):
    start = time.perf_counter()
    subprocess.run(command, env=environment(), check=True, capture_output=True, timeout=60)
    return time.perf_counter() - start


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from m2po_lab.cli import main; main(['--help']); main(['analyze', '--help']);"
        f"sys.exit([m for m in {HEAVY!r} if m in sys.modules] or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: m2po-lab analyze" in done.stdout


def test_help_takes_less_than_25_times_a_bare_start():
    bare = min(_seconds([sys.executable, "-c", "pass"]) for _ in range(5))
    help_ = min(_seconds([*START, "--help"]) for _ in range(5))
    assert help_ < TIMES_A_BARE_START * bare


def test_a_report_without_a_directory_loads_no_plotting():
    code = (
        "import sys; from m2po_lab.cli import main;"
        f"main(['analyze', {str(REAL / 'trl_grpo_bf16.jsonl')!r}, '--quiet']);"
        f"sys.exit([m for m in {PLOTTING!r} if m in sys.modules] or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")
