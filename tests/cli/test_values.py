import pytest

from m2po_lab.cli.errors import UsageError, explained, one_line
from m2po_lab.cli.values import chosen, clip_range, nonnegative, pairs, words


def test_a_list_is_split_at_commas_and_spaces_do_not_matter():
    assert words("step, lag,,position ") == ("step", "lag", "position")
    assert words(None) == ()


def test_columns_are_pairs_of_role_and_name():
    assert pairs("--columns", "old=a, current=b") == {"old": "a", "current": "b"}


@pytest.mark.parametrize("text", ["old", "=a", "old=", "old=a,b"])
def test_a_pair_without_both_sides_names_the_option_the_value_and_an_example(text):
    with pytest.raises(UsageError, match=r"^--columns: '.*' is not ROLE=COLUMN; for example "):
        pairs("--columns", text)


def test_a_clip_range_is_one_number_or_two():
    assert clip_range("--clip", "0.2") == (0.2, 0.2)
    assert clip_range("--clip", "0.2,0.28") == (0.2, 0.28)
    assert clip_range("--clip", "1,4") == (1.0, 4.0)


@pytest.mark.parametrize(
    "text", ["", "1,2,3", "a", "-0.1", "nan", "inf", "0.2,x", "1.5", "1.1,0.2"]
)
def test_a_wrong_clip_range_is_refused(text):
    with pytest.raises(UsageError, match=r"^--clip: "):
        clip_range("--clip", text)


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "x", "1e999"])
def test_a_budget_must_be_finite_and_not_negative(text):
    with pytest.raises(UsageError, match=r"^--budget: .*; for example"):
        nonnegative("--budget", text)


def test_an_unknown_word_gets_the_closest_known_one():
    with pytest.raises(UsageError, match="did you mean low-tail"):
        chosen("--ignore", "low_tail", ["low-tail", "high-tail"])
    with pytest.raises(UsageError, match="one of lag, step"):
        chosen("--by", "weekday", ["step", "lag"])


def test_any_error_is_one_printable_line():
    assert one_line("a\n\x1b[2Jb\tc ") == "a [2Jb c"
    assert explained(FileNotFoundError(2, "No such file", "x\ny")) == (
        "x y: No such file; check the path and its permissions"
    )
    try:
        raise RuntimeError("two\nlines")
    except RuntimeError as error:
        text = explained(error)
    assert "test_values.py" in text
    assert "RuntimeError: two lines" in text
