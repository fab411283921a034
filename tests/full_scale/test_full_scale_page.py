"""docs/howto/full_scale.md: its commands run on the tiny run, and it names what there is."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import environment

from full_scale.plan import plan
from full_scale.preflight.run import CHECKS
from full_scale.recipes import RECIPES
from m2po_lab.findings.catalog import CATALOG

ROOT = Path(__file__).parents[2]
RECIPE = RECIPES["qwen2.5-math-7b-m2po-s256"]
NEEDS = {
    "git clone": "a network",
    "python3.12 -m venv": "a network",
    "pip install": "GPU builds of several gigabytes",
    "m2po-lab data prepare --tokenizer": "the hub; the tiny run is prepared from files",
    "sbatch": "a Slurm; test_cluster.py has one that is none",
    "NODES=4 bash": "four nodes; test_cluster.py has two",
    "HEAD=10.0.0.1 bash": "four nodes; test_cluster.py has two",
}
"""Commands that cannot run as they stand -> what they need."""
LAUNCHED = {f"m2po-lab {command} {RECIPE.name}" for command in ("preflight", "launch")}
"""Commands of the tiny run itself."""


@pytest.fixture(scope="module")
def page():
    return (ROOT / "docs" / "howto" / "full_scale.md").read_text()


@pytest.fixture(scope="module")
def commands(page):
    blocks = re.findall(r"^```sh(?: run)?\n(.*?)^```", page, re.M | re.S)
    return [line for block in blocks for line in block.splitlines()]


def test_every_command_is_run_or_says_what_it_needs(commands, launched):
    rest = [line for line in commands if not line.startswith(tuple(NEEDS))]
    assert set(rest) >= LAUNCHED
    search = os.pathsep.join([f"{sys.prefix}/bin", os.environ["PATH"]])
    ran = []
    for line in rest:
        if line in LAUNCHED:
            continue
        done = subprocess.run(
            ["bash", "-euc", line],
            cwd=launched.folder,
            env=environment(PATH=search),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        ran.append(shlex.split(line)[1])
    assert {"launch", "plan", "analyze", "eval"} <= set(ran)


def test_nothing_is_excused_that_the_page_does_not_show(commands):
    for start in NEEDS:
        assert any(line.startswith(start) for line in commands), start


def test_every_metric_that_is_named_is_one_of_the_run(page, launched):
    named = re.findall(r"`((?:actor|critic|training|response_length|timing_s)/[\w/]+)`", page)
    step = json.loads(launched.metrics[0].read_text().splitlines()[1])["data"]
    assert len(named) > 8
    assert set(named) <= set(step)


def test_every_finding_that_is_named_exists(page):
    table = page.split("| finding |")[1].split("\n\n")[0]
    named = re.findall(r"^\| (`.*?) \|", table, re.M)
    ids = [each for cell in named for each in re.findall(r"`([\w-]+)`", cell)]
    assert len(ids) > 8
    assert set(ids) <= set(CATALOG)


def test_every_check_is_explained(page):
    table = page.split("| check |")[1].split("\n\n")[0]
    shown = {
        name for cell in re.findall(r"^\| ([^|]+) \|", table, re.M) for name in cell.split(", ")
    }
    names = {name.strip() for name in shown} - {"---"}
    assert names >= {"verl"} | {name for entry, _ in CHECKS for name in entry}


def test_the_folders_of_a_run_are_those_that_are_named(page, launched):
    table = page.split("| folder |")[1].split("\n\n")[0]
    named = set(re.findall(r"^\| `(\w+)/` \|", table, re.M))
    there = {path.name for path in launched.run.iterdir()}
    assert there == named | {"hydra"}


def test_numbers_of_the_recipe_and_its_plan_are_those_of_today(page):
    planned = plan(RECIPE)
    hours = planned.hours
    minutes = RECIPE.staleness_steps * hours.sampling_seconds / 60
    text = " ".join(page.split())
    assert f"{RECIPE.staleness_steps * RECIPE.train_batch_size:,} prompts" in text
    assert f"by the plan {round(minutes, -1):.0f} minutes" in text
    assert f"by the plan {hours.sampling_seconds:.0f} and {hours.training_seconds:.0f} s" in text
    assert f"by the plan {planned.memory.training_peak / 1e9:.0f} in training" in text
    assert f"Every {RECIPE.every} steps" in text


def test_every_file_that_is_named_exists(page):
    for name in set(re.findall(r"full_scale/[\w./]+", page)):
        assert (ROOT / name.rstrip(".")).exists(), name
