"""`m2po-lab plan` as users run it."""

import json

import pytest

RECIPE = "qwen2.5-math-7b-m2po-s256"


def test_it_shows_the_plan_and_writes_the_same_as_json(call, tmp_path):
    done = call("plan", RECIPE, "mfu=0.5", "--json", "plan.json")
    assert done.returncode == 0
    assert "what staleness buys" in done.stdout
    written = json.loads((tmp_path / "plan.json").read_text())
    assert written["recipe"] == RECIPE
    assert written["assumptions"]["mfu"] == 0.5
    assert f"{written['queue']['rows']:,} responses" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((RECIPE, "mfu"), "ASSUMPTIONS: 'mfu' is not NAME=VALUE; for example mfu=0.4"),
        ((RECIPE, "mf=1"), "mf: is no assumption; did you mean mfu?"),
        ((RECIPE, "mfu=2"), "mfu: 2 is above 1; it is a share"),
        ((RECIPE, "response_mean=9999"), "response_mean: 9999 is above the limit of 2560"),
        (("qwen2.5-math-7b-m2po",), "RECIPE: 'qwen2.5-math-7b-m2po' is unknown; did you mean"),
        ((RECIPE, "--json", "."), "--json: . is a directory; name a file in it, or -"),
    ],
)
def test_what_it_cannot_plan_is_said_in_one_line(call, arguments, message):
    done = call("plan", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"m2po-lab: {message}")
    assert done.stderr.count("\n") == 1
