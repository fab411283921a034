import os
import re
import subprocess

import pytest

from full_scale.overrides import Place, overrides
from full_scale.recipes import RECIPES
from full_scale.scripts import FOLDER, script, write

RECIPE = RECIPES["qwen2.5-math-7b-m2po-s256"]


def test_the_committed_scripts_are_those_of_the_table():
    wanted = {f"{name}.sh": script(recipe) for name, recipe in RECIPES.items()}
    there = {path.name: path.read_text() for path in FOLDER.iterdir()}
    assert there == wanted, "run: python -m full_scale.scripts"
    assert all(os.access(path, os.X_OK) for path in FOLDER.iterdir())


def test_writing_again_changes_what_differs_and_nothing_else(tmp_path):
    assert len(write(tmp_path)) == len(RECIPES)
    (tmp_path / "gone-s0.sh").write_text("of a recipe that is gone")
    (tmp_path / f"{RECIPE.name}.sh").write_text("edited by hand")
    changed = {path.name for path in write(tmp_path)}
    assert changed == {"gone-s0.sh", f"{RECIPE.name}.sh"}
    assert not (tmp_path / "gone-s0.sh").exists()
    assert not write(tmp_path)


def run(tmp_path, *arguments, **variables):
    """Run a script with stand-ins for its two commands, which print what they are given."""
    for name in ("python", "m2po-lab"):
        (tmp_path / name).write_text(
            f'#!/usr/bin/env bash\nprintf "%s\\n" "{name}" "$@"\nexit ${{FAIL:-0}}\n'
        )
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", FOLDER / f"{RECIPE.name}.sh", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
    )


def test_a_script_passes_the_settings_of_the_recipe(tmp_path):
    done = run(
        tmp_path, "trainer.nnodes=2", PREFLIGHT="no", DATA="a folder", OUT="o,1", MODEL="m/m"
    )
    words = done.stdout.splitlines()
    assert words[:3] == ["python", "-m", "verl.trainer.main_ppo"]
    start = re.search(r"metrics/(\w+)\.jsonl", done.stdout)[1]
    place = Place(data=f"{tmp_path}/a folder", out=f"{tmp_path}/o,1", model="m/m", start=start)
    plain = [each.replace("'", "") for each in overrides(RECIPE, place)]
    assert [each.replace("'", "") for each in words[3:]] == [*plain, "trainer.nnodes=2"]
    assert (tmp_path / "o,1" / "metrics").is_dir()


def test_a_script_checks_first_and_stops_at_a_failure(tmp_path):
    done = run(tmp_path, "trainer.nnodes=2")
    assert done.stdout.splitlines()[:3] == ["m2po-lab", "preflight", RECIPE.name]
    assert done.stdout.count("trainer.nnodes=2") == 2
    stopped = run(tmp_path, FAIL="1", OUT="stopped")
    assert stopped.returncode == 1
    assert "verl.trainer.main_ppo" not in stopped.stdout
    assert not (tmp_path / "stopped").exists()


@pytest.mark.parametrize("name", RECIPES)
def test_every_script_says_what_to_expect_and_what_to_watch(name):
    comment = re.findall(r"^# (.*)", script(RECIPES[name]), re.M)
    text = " ".join(comment)
    assert RECIPES[name].summary in text
    assert re.search(r"Plan: [\d.]+ hours for 1000 steps", text)
    assert "Expected: " in text
    assert "Watch: " in text
