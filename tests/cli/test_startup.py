import subprocess
import sys

from tests.cli.conftest import REAL, environment

HEAVY = ("numpy", "pyarrow", "pandas", "scipy", "matplotlib", "seaborn", "torch", "numba", "jinja2")
PLOTTING = ("matplotlib", "seaborn", "pandas", "torch")


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
