import re

import pytest

from m2po_lab.report.outline import BREAKDOWNS
from m2po_lab.report.terminal import render
from m2po_lab.report.vocabulary import STATISTIC_LINES, SUBSETS
from tests.report import examples

QUESTIONS = [
    "What was read",
    "Can it be trusted",
    "How far off-policy, and where",
    "What each trust region would do to these tokens",
    "What to look at",
]


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("report", [examples.full(), examples.bare()], ids=["full", "bare"])
def test_no_line_is_wider_than_the_terminal_or_100_columns(report, width):
    lines = render(report, width=width, by=BREAKDOWNS).splitlines()
    assert max(map(len, lines)) <= min(width, 100)
    assert not [line for line in lines if line != line.rstrip()]


@pytest.mark.parametrize("report", [examples.full(), examples.bare()], ids=["full", "bare"])
def test_the_five_questions_are_answered_in_order(report):
    text = render(report)
    places = [text.index(f"\n{question}\n") for question in QUESTIONS]
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
    part = text[text.index("What to look at") :]
    assert part.index("error  non-finite") < part.index("warning  low-tail")
    assert part.index("warning  low-tail") < part.index("info  over-budget")
    assert "1 error, 1 warning, 1 note." in part


def test_a_partial_report_says_so_at_the_top():
    assert "PARTIAL" in render(examples.bare()).splitlines()[1]


def test_numbers_of_a_sample_say_so():
    report = examples.full()
    assert "Objectives, on the counted tokens" in render(report)
    report["objectives"]["ppo"].update(exact=False, tokens=524_288)
    assert "Objectives, on a sample of 524,288 tokens" in render(report)
