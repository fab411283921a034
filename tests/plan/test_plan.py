"""A plan as a whole: what it says, what it refuses, what it leaves to assumptions."""

import json
from dataclasses import fields, replace

import pytest

from full_scale.errors import UnusableError
from full_scale.plan import Assumptions, changed, document, plan, summary, text
from full_scale.plan.cost import Training, flops, multiplied, passes
from full_scale.plan.plan import hours_of
from full_scale.recipes import RECIPES

NAME = "qwen2.5-math-7b-m2po-s256"
QUICK = replace(RECIPES[NAME], train_batch_size=32, mini_batch_size=8, samples=4)


@pytest.fixture(scope="module")
def quick():
    return plan(QUICK)


def test_an_update_counts_six_operations_a_parameter_and_token():
    model = RECIPES[NAME].shape
    assert flops(model, tokens=10, squares=0) == 60 * multiplied(model)
    assert multiplied(model) == model.parameters - model.vocabulary * model.hidden - model.hidden
    # Attention: scores and values, the causal half, forward and twice that backward.
    assert flops(model, 0, squares=100) == 3 * 4 * 28 * (28 * 128) * 100 / 2


def test_forward_passes_are_those_of_the_method():
    counted = {
        name: passes(RECIPES[f"qwen2.5-math-7b-{name}-s256"])
        for name in ("m2po", "grpo", "gspo", "none", "tis")
    }
    assert counted == {"m2po": 1, "grpo": 0, "gspo": 0, "none": 0, "tis": 1}
    assumed = Assumptions(selection_ns=0)
    m2po, grpo = (
        Training.of(RECIPES[f"qwen2.5-math-7b-{name}-s256"], assumed) for name in ("m2po", "grpo")
    )
    assert m2po.seconds_a_token == pytest.approx(1.25 * grpo.seconds_a_token)


def test_hours_are_steps_filling_the_queue_evaluations_and_checkpoints(quick):
    recipe, hours, assumed = QUICK, quick.hours, quick.assumed
    evaluation = hours.sampling_seconds * assumed.evaluated / recipe.rows
    seconds = recipe.steps * hours.step_seconds + recipe.staleness_steps * hours.sampling_seconds
    seconds += recipe.steps / recipe.every * (evaluation + quick.checkpoint_bytes / 2e9)
    assert hours.mean == pytest.approx(seconds / 3600)
    assert hours.low < hours.mean < hours.high
    between = assumed.switch_seconds + assumed.other_seconds
    assert hours.step_seconds == pytest.approx(
        hours.sampling_seconds + hours.training_seconds + between
    )


def test_staleness_costs_the_queue_and_no_time_a_step():
    fresh, stale = (hours_of(replace(QUICK, staleness=age), Assumptions()) for age in (0, 256))
    assert fresh.step_seconds == stale.step_seconds
    assert fresh.mean < stale.mean


def test_other_schedules_use_the_same_gpus_and_say_how_old_their_data_is(quick):
    own, *others = quick.schedules
    assert (own.in_turns, own.staleness, own.oldest) == (True, 256, 256)
    assert [each.sampling + each.training for each in others] == [8] * 4
    assert others[0].staleness == QUICK.updates_per_step
    assert others[1].oldest == 0
    assert others[-1].step_seconds <= others[1].step_seconds


def test_the_text_names_every_part_and_every_assumption(quick):
    shown = text(quick)
    for part in (*quick.memory.sampling, *quick.memory.training):
        assert part in shown
    for each in fields(Assumptions):
        assert f"{each.name}=" in shown
    assert max(map(len, shown.splitlines())) <= 100
    assert "fits" in shown


def test_the_document_is_json_and_holds_what_the_text_shows(quick):
    shown = json.loads(json.dumps(document(quick)))
    assert shown["schema"] == "m2po-lab/plan/1"
    assert shown["memory"]["fits"] is True
    assert shown["hours"]["mean"] == quick.hours.mean
    assert shown["schedules"][0]["name"] == "in turns"


def test_the_summary_is_one_line_with_hours_and_their_range():
    line = summary(QUICK)
    hours = hours_of(QUICK, Assumptions())
    assert "\n" not in line
    assert f"{hours.mean:.1f} hours" in line or f"{hours.mean:.0f} hours" in line
    assert "not measured" in line


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mfu", "2", "mfu: 2 is above 1; it is a share"),
        ("mfu", "0", "mfu: 0 is not a number above 0"),
        ("mfu", "nan", "mfu: nan is not a number above 0"),
        ("token_ms", "-1", "token_ms: -1 is not a number of at least 0"),
        ("mfu", "fast", "mfu: 'fast' is not a number"),
        ("sequences", "1.5", "sequences: '1.5' is not a whole number"),
        ("mfus", "1", "mfus: is no assumption; did you mean mfu?"),
        ("qqq", "1", "qqq: is no assumption; one of gpu_gb,"),
    ],
)
def test_an_assumption_that_cannot_be_is_refused_in_one_line(name, value, message):
    with pytest.raises(UnusableError) as error:
        changed(Assumptions(), {name: value})
    assert str(error.value).startswith(message)


def test_a_mean_beyond_the_limit_is_refused():
    with pytest.raises(UnusableError, match="response_mean: 3000 is above the limit of 2560"):
        plan(QUICK, Assumptions(response_mean=3000))


def test_every_assumption_can_be_changed_and_changes_the_plan():
    base = document(plan(QUICK))
    del base["assumptions"]
    for each in fields(Assumptions):
        value = getattr(Assumptions(), each.name)
        other = {"response_mean": 700, "seed": 1, "sequences": 8}.get(each.name, value * 0.9)
        found = document(
            plan(
                QUICK,
                changed(
                    Assumptions(),
                    {each.name: f"{other:.0f}" if isinstance(value, int) else str(other)},
                ),
            )
        )
        del found["assumptions"]
        assert found != base, each.name
