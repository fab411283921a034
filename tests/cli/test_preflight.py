"""The command without verl, as a user meets it who has not installed the environment yet."""

import importlib.metadata
import json
import subprocess

import pytest

from full_scale.preflight import versions

RECIPE = "qwen2.5-math-7b-m2po-s256"


@pytest.fixture(autouse=True)
def without_verl(monkeypatch):
    found = importlib.metadata.version

    def version(name):
        if name == "verl":
            raise importlib.metadata.PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr(versions, "version", version)


def test_a_missing_verl_fails_with_the_command_that_installs_it(call):
    done = call("preflight", RECIPE)
    assert done.returncode == 1
    assert "failed       verl: not installed here" in done.stdout
    assert "-> pip install" in done.stdout


def test_what_needs_verl_is_not_checked_and_never_ok(call):
    report = json.loads(call("preflight", RECIPE, "--json", "-").stdout)
    statuses = {check["name"]: check["status"] for check in report["checks"]}
    assert statuses.pop("verl") == "failed"
    assert set(statuses.values()) == {"not checked"}
    assert {"configuration", "staleness", "loss", "workers", "disk", "data hashes"} <= set(statuses)
    assert report["schema"] == "m2po-lab/preflight/1"
    assert report["failed"] == 1


def test_json_beside_the_report_goes_into_a_file(call, tmp_path):
    done = call("preflight", RECIPE, "--json", "checks.json")
    assert "1 failed" in done.stdout
    assert json.loads((tmp_path / "checks.json").read_text())["recipe"] == RECIPE


def test_a_failed_preflight_keeps_the_job_from_starting(call, monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: started.append(command))
    done = call("launch", RECIPE)
    assert done.returncode == 1
    assert "--no-preflight" in done.stderr
    assert not started
    assert not list(tmp_path.iterdir())


def test_without_preflight_the_command_is_run_and_its_status_is_handed_on(call, monkeypatch):
    started = []

    def run(command, **_):
        started.append(command)
        return subprocess.CompletedProcess(command, 7)

    monkeypatch.setattr(subprocess, "run", run)
    done = call("launch", RECIPE, "--no-preflight", "trainer.nnodes=1")
    assert done.returncode == 7
    (command,) = started
    assert command[1:3] == ["-m", "verl.trainer.main_ppo"]
    assert command[-1] == "trainer.nnodes=1"
