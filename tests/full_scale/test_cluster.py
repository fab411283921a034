"""The templates for several nodes: two of them here, started by a Slurm that is none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jobs
import pytest
from engines import free_port
from tiny import environment, save_problems, shrunk

import full_scale
from full_scale.cluster.wait import wait
from full_scale.cpu_support.model import save_model

CLUSTER = Path(full_scale.__file__).parent / "cluster"
RECIPE = "qwen2.5-32b-m2po-s256"
SRUN = """#!/usr/bin/env bash
while [ "$1" != bash ]; do shift; done
exec "$@"
"""
SCONTROL = """#!/usr/bin/env bash
printf '127.0.0.1\\n127.0.0.1\\n'
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nodes")
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def checks(work):
    """Checks by name, of a preflight that the head ran once both nodes were there."""
    place = ["--model", save_model(work / "model"), "--data", save_problems(work)]
    arguments = [RECIPE, *shrunk(work, 1), "trainer.nnodes=2", *place]
    wanted = {
        "COMMAND": f"{sys.executable} -m m2po_lab preflight --json checks.json",
        "HOME": str(work),
        "PATH": os.pathsep.join([str(work), f"{sys.prefix}/bin", os.environ["PATH"]]),
        "PORT": str(free_port()),
        "PYTHONPATH": str(Path(full_scale.__file__).parents[1]),
        "RAY_OPTIONS": "--num-gpus=1 --num-cpus=4",
        "RAY_TMPDIR": str(work),
        "SLURM_JOB_NODELIST": "two",
    }
    (work / "full_scale").symlink_to(CLUSTER.parent)
    with (work / "log.txt").open("w") as log:
        process = subprocess.Popen(
            ["bash", CLUSTER / "slurm.sbatch", *map(str, arguments)],
            cwd=work,
            env=environment(**wanted),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        process.wait(400)
    finally:
        jobs.kill(process)
    report = work / "checks.json"
    assert report.exists(), (work / "log.txt").read_text()[-4000:]
    return {check["name"]: check for check in json.loads(report.read_text())["checks"]}


def test_the_plugin_is_asked_for_on_every_gpu_of_both_nodes(checks):
    assert checks["workers"]["status"] == "ok"
    assert checks["workers"]["found"].startswith("2 workers in the ray cluster at ")


def test_the_rest_of_the_job_is_checked_as_on_one_node(checks):
    assert not [check for check in checks.values() if check["status"] == "failed"]
    assert "on each of 2 ranks" in checks["batch"]["found"]


def test_nodes_that_do_not_come_are_said(monkeypatch, capsys):
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{free_port()}")
    assert wait(2, seconds=0.0) == 1
    assert "0 of 2 nodes joined" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["node.sh", "slurm.sbatch"])
def test_templates_are_valid_shell(name):
    assert subprocess.run(["bash", "-n", CLUSTER / name]).returncode == 0
