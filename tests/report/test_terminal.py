import re
from pathlib import Path

import pytest

import m2po_lab
from m2po_lab.report.outline import BREAKDOWNS
from m2po_lab.report.terminal import render
from m2po_lab.report.vocabulary import STATISTIC_LINES, SUBSETS
from tests.report import examples

REAL = Path(__file__).resolve().parents[1] / "data" / "real"

SECTIONS = [
    "What to look at",
    "What was read",
    "Can it be trusted",
    "How far off-policy, and where",
    "What each trust region would do to these tokens",
    "What the findings were seen by",
]
SCREEN = 40


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("report", [examples.full(), examples.bare()], ids=["full", "bare"])
def test_no_line_is_wider_than_the_terminal_or_100_columns(report, width):
    lines = render(report, width=width, by=BREAKDOWNS).splitlines()
    assert max(map(len, lines)) <= min(width, 100)
    assert not [line for line in lines if line != line.rstrip()]


@pytest.mark.parametrize("report", [examples.full(), examples.bare()], ids=["full", "bare"])
def test_the_verdict_comes_first_then_the_numbers_then_the_evidence(report):
    text = render(report)
    places = [text.index(f"\n{title}\n") for title in SECTIONS]
    assert places == sorted(places)


@pytest.mark.parametrize("width", [80, 100])
def test_no_number_is_cut_at_any_width(width):
    report = examples.full()
    report["ratios"]["current/behavior"]["all"].update(m2=123.456, log_ratio_min=-1234.5)
    text = render(report, width=width, by=BREAKDOWNS)
    assert "123.5" in text
    assert "-1234" in text
    assert "…" not in text.replace("4, … (6 in all)", "")


def test_ess_and_chi2_never_stand_without_m2_k1_both_tails_and_the_top_share():
    beside = {"M2", "k1", "min d", "max d", "top 1 %"}
    for width in (60, 80, 100):
        for line in render(examples.full(), width=width, by=BREAKDOWNS).splitlines():
            if re.search(r"ESS/n\s+(chi2|top)", line):
                assert all(head in line for head in beside), line


def test_all_three_token_sets_are_shown_with_the_ratio_and_the_unit():
    text = render(examples.full())
    head = next(line for line in text.splitlines() if "A != 0" in line)
    assert all(name in head for _, name in SUBSETS)
    assert "current/behavior, per token over the loss mask" in text


def test_color_only_adds_escape_sequences():
    plain, color = render(examples.full()), render(examples.full(), color=True)
    assert "\x1b" not in plain
    assert "\x1b" in color
    assert re.sub(r"\x1b\[[0-9;]*m", "", color) == plain


def test_text_from_a_log_cannot_reach_the_terminal_as_control_sequence_or_markup():
    report = examples.full()
    report["inputs"][0]["path"] = "a\x1b]0;owned\x07[bold]b\n\u202ec.jsonl"
    report["findings"] = [examples.finding(message="[link=x]\x1b[2J", evidence={"row": "\x9b"})]
    text = render(report)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "[bold]b" in text
    assert "[link=x]" in text


def test_null_is_a_dash_and_never_a_zero():
    report = examples.full()
    for field, _ in SUBSETS:
        report["ratios"]["current/behavior"][field] = examples.nothing()
    text = render(report, by=())
    text = text[text.index("per token over the loss mask") :]
    for _, short, _ in STATISTIC_LINES[1:]:
        line = next(x for x in text.splitlines() if x.strip().startswith(short.strip() + " "))
        assert "–" in line


def test_without_advantages_the_report_says_what_it_would_need():
    report = examples.full()
    report["ratios"]["current/behavior"].update(
        active=None, nonzero_advantage=None, by_quadrant=None
    )
    text = render(report)
    assert "not computable, needs advantages" in text
    assert "By quadrant" not in text


def test_a_long_breakdown_keeps_its_ends_and_its_peak():
    report = examples.full()
    steps = report["ratios"]["current/behavior"]["by_step"]
    steps[33]["m2"] = 99.5
    text = render(report, by=("step",))
    lines = [x.split() for x in text[text.index("By step") :].splitlines()[2:]]
    shown = {words[0] for words in lines[:12] if words}
    assert {"0", "33", "39"} <= shown
    assert len([1 for words in lines[:13] if words and words[0].isdigit()]) <= 12


def test_findings_stand_errors_first_and_are_counted():
    text = render(examples.full())
    part = text[: text.index("What was read")]
    assert part.index("error  non-finite") < part.index("warning  low-tail")
    assert part.index("warning  low-tail") < part.index("info  over-budget")
    assert "1 error, 1 warning, 1 note." in part
    assert text.splitlines()[-2].startswith("1 error, 1 warning, 1 note: non-finite, low-tail")


def test_what_is_wrong_fits_a_screen_however_much_is_wrong():
    report = examples.full()
    report["findings"] = [
        examples.finding(id=f"low-tail-{i}", message="M2 is high. " * 12) for i in range(12)
    ]
    text = render(report)
    first = text[: text.index("What was read")]
    assert len(first.splitlines()) <= SCREEN
    assert all(f"low-tail-{i}:" in first for i in range(12))
    assert text.count("do: Watch M2") == 12


@pytest.mark.parametrize("name", ["trl_grpo_bf16.jsonl", "verl_grpo_fp16.jsonl"])
def test_the_verdict_on_a_real_run_fits_a_screen(name):
    text = str(m2po_lab.analyze(REAL / name))
    assert len(text[: text.index("What was read")].splitlines()) <= SCREEN


def test_words_are_explained_before_a_finding_uses_them():
    text = render(examples.full())
    part = text[: text.index("What was read")]
    for word in ("M2: mean of d²", "ESS/n: share", "d, r: log-ratio"):
        assert part.index(word) < part.index("error  non-finite")


def test_the_table_of_objectives_says_where_the_rest_is():
    report = examples.full()
    objectives = report["objectives"]
    objectives.update({f"o{i}": objectives["ppo"] for i in range(20)})
    text = render(report)
    assert "12 of 22, all of them on the page (--out DIR)" in text
    assert "  o9 " in text
    assert "  o19" not in text


def test_lost_tokens_variance_and_overlap_are_shown():
    text = render(examples.full())
    table = text[text.index("by probability under behavior") :].splitlines()
    assert table[1].split() == ["dropped", "by", "0-0.5", "0.5-1"]
    assert table[2].split() == ["(tokens)", "40", "462"]
    assert table[3].split() == ["ppo", "9", "%", "3", "%"]
    assert "by entropy in nats" in text
    assert "0.5 up" in text
    assert re.search(r"variance\n.*ppo.* 0\.83\n", text)
    assert re.search(r"Which objectives drop the same tokens\n.*\n +ppo +9 +1 +1 +0\.6\n", text)


def test_objectives_that_drop_the_same_tokens_share_a_line():
    report = examples.full()
    report["objectives"]["dapo"] = report["objectives"]["ppo"]
    report["overlap"] = {
        "objectives": ["ppo", "m2po", "dapo"],
        "dropped": [9, 7, 9],
        "jaccard": [[1.0, 0.6, 1.0], [0.6, 1.0, 0.6], [1.0, 0.6, 1.0]],
    }
    text = render(report)
    assert re.search(r"  ppo, dapo +9 +1 +1 +0\.6\n", text)
    assert "ppo +1" in text


def test_the_own_trust_region_of_a_framework_is_said_where_trust_regions_are_compared():
    report = examples.full()
    remark = "prime-rl's trust region is on prob_delta, the difference of probabilities"
    report["inputs"][0].update(format="prime-rl", remarks=[remark])
    report["objectives"]["dppo_tv"] = report["objectives"]["ppo"]
    text = render(report)
    assert f"Note: {remark}" in text[text.index("What was read") : text.index("Can it be")]
    part = text[text.index("What each trust region") :]
    assert f"Note: {remark}" in part
    assert part.index("dppo_tv") < part.index("ppo  ")


def test_groups_are_said_in_plain_words():
    report = examples.full()
    report["groups"] = {"by": "prompt", "n": 32, "rows": 128, "sizes": {"4": 32}, "sampled": 1.0}
    assert "groups: 32, each of 4 rows with the same prompt.\n" in render(report)
    report["groups"] |= {"sizes": {"2": 30, "10": 2}, "constant_reward": 5}
    assert (
        "groups: 32, each of 2 to 10 rows with the same prompt; in 5 of them all rewards are equal"
    ) in render(report)
    report["groups"] |= {"constant_reward": 0}
    assert "in none of them are all rewards equal" in render(report)


def test_the_title_is_the_short_name_of_the_log():
    report = examples.full()
    report["inputs"][0]["path"] = "/home/someone/runs/seven/trl_grpo_bf16.jsonl"
    assert render(report).splitlines()[0] == "M2PO Lab 0.1.0: trl_grpo_bf16.jsonl"
    metrics = {**report["inputs"][0], "path": "/home/metrics.json", "rows": 0, "tokens": 0}
    report["inputs"] = [metrics, {**report["inputs"][0], "path": "/home/runs/seven/rollouts"}]
    assert render(report).splitlines()[0] == "M2PO Lab 0.1.0: seven/rollouts and 1 more"


def test_metrics_are_joined_to_tokens_only_where_their_steps_are_known_to_meet():
    report = examples.full()
    assert "joined to the tokens by step: 3 of their 40 steps are in it; its" in render(report)
    for metric in report["metrics"]:
        metric.update(framework="metrics", step_offset=0)
    assert "log_history.json is not joined to the tokens" in render(report)
    report["inputs"][0]["columns"]["step"] = "global_step"
    assert "3 of their 40 steps are in it." in render(report)


def test_a_partial_report_says_so_at_the_top():
    assert "PARTIAL" in render(examples.bare()).splitlines()[1]


def test_numbers_of_a_sample_say_so():
    report = examples.full()
    assert "Objectives, on the counted tokens" in render(report)
    report["objectives"]["ppo"].update(exact=False, tokens=524_288)
    assert "Objectives, on a sample of 524,288 tokens" in render(report)


def test_rewards_and_lengths_are_told_with_their_course():
    report = examples.bare()
    report["lengths"] = {
        "unit": "characters", "mean": 20.5, "high": 90.0,
        "by_finish_reason": {"length": {"n": 2, "mean": 80.0}, "stop": {"n": 9, "mean": 8.0}},
    }  # fmt: skip
    text = " ".join(render(report).split())
    assert "reward: mean 0.53, of 128 rows; 0.9 at step 0, 0.12 at step 39, between 0.12" in text
    assert (
        "lengths: mean 20.5 characters, longest 90; by finish reason: stop 9 rows of mean 8, "
        "length 2 rows of mean 80."
    ) in text
