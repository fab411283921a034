import json
import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m2po_lab.report.document import dumps
from m2po_lab.report.format import ABSENT, count, evidence, interval, number, percent, plain


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.02653, "1.027"), (0.34323, "0.3432"), (13.361, "13.36"), (2.7824e-6, "2.78e-6"),
        (-0.000213, "-2.13e-4"), (0, "0"), (12345.6, "12346"), (1234567.0, "1.23e6"),
        (None, ABSENT), (math.nan, ABSENT), (math.inf, ABSENT),
    ],
)  # fmt: skip
def test_a_number_keeps_three_or_four_significant_digits(value, text):
    assert number(value) == text


@given(st.floats(-1e300, 1e300))
def test_a_written_number_is_within_its_last_digit_and_never_wide(value):
    text = number(value)
    assert len(text) <= 10
    assert float(text) == pytest.approx(value, rel=6e-3, abs=1e-320)


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.9972, "99.7 %"), (0.00066, "0.066 %"), (0.0, "0 %"), (1.0, "100 %"),
        (0.99999, ">99.9 %"), (1e-9, "<0.001 %"), (None, ABSENT),
    ],
)  # fmt: skip
def test_a_fraction_is_written_as_percent(fraction, text):
    assert percent(fraction) == text


def test_counts_are_written_in_full_until_they_are_millions():
    assert (count(3541), count(16_777_216), count(None)) == ("3,541", "16.8M", ABSENT)


def test_an_interval_with_an_unknown_end_is_absent():
    assert interval(0.41, 1.72) == "0.41..1.72"
    assert interval(None, 1.72) == ABSENT


@given(st.text())
def test_text_from_a_log_is_printable_after_plain(text):
    assert not {unicodedata.category(c) for c in plain(text)} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_control_and_direction_characters_stay_visible():
    assert plain("a\x1b[31mb\n\u202ec\x9b") == r"a\x1b[31mb\n\u202ec\x9b"


def test_evidence_is_cut_after_four_entries():
    assert evidence({"ratio": "a/b", "steps": [1, 2, 3, 4, 5]}) == (
        "ratio a/b, steps 1, 2, 3, 4, … (5 in all)"
    )


def test_json_is_strict_and_ascii():
    with pytest.raises(ValueError, match="JSON"):
        dumps({"m2": math.nan})
    text = dumps({"path": "\x1b\x9bü\ud800"})
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text) == {"path": "\x1b\x9bü\ud800"}
