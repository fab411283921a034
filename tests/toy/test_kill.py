"""kill -9: the next call carries on, and nothing of the killed one is left running."""

import os
import signal
import subprocess
import sys
import time

import pytest

from toy_envs.journal import METRICS

STEPS = 40
RUN = "bandit_m2po_s8_seed0"


def command(*words):
    code = "import sys; from m2po_lab.cli import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-c", code, "toy", *map(str, words)]


def lines(place):
    return place.read_bytes().count(b"\n") if place.exists() else 0


def files(out):
    """Every byte of a run, apart from how long it took."""
    return {
        p.relative_to(out): p.read_bytes()
        for p in sorted(out.rglob("*"))
        if p.is_file() and p.name != "seconds.json"
    }


def killed_in_the_middle(words, metrics):
    """Start a command and kill it, without warning, once some steps are done."""
    with subprocess.Popen(command(*words), start_new_session=True) as process:
        while lines(metrics) < 7:
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    assert lines(metrics) < STEPS


@pytest.mark.slow
def test_a_run_killed_without_warning_goes_on_to_the_same_bytes(tmp_path):
    settings = ("run", "bandit", "--staleness", 8, "--steps", STEPS, "--checkpoint-every", 3)
    killed_in_the_middle((*settings, "--out", tmp_path / "broken"), tmp_path / "broken" / METRICS)
    for name in ("broken", "whole"):
        subprocess.run(command(*settings, "--quiet", "--out", tmp_path / name), check=True)
    assert files(tmp_path / "broken") == files(tmp_path / "whole")


@pytest.mark.slow
def test_workers_of_a_killed_figure_stop(tmp_path):
    settings = ("figure", "bandit", "--arms", "m2po_s8", "--seeds", 1, "--workers", 1)
    metrics = tmp_path / "runs" / RUN / METRICS
    killed_in_the_middle((*settings, "--out", tmp_path), metrics)
    time.sleep(1)
    before = lines(metrics)
    time.sleep(1)
    assert lines(metrics) == before
