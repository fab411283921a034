"""The answer is what the last box holds."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from full_scale.reward.answer import boxed


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"so \boxed{7}", "7"),
        (r"\boxed{3}, no, wait: \boxed{4}", "4"),
        (r"\boxed{3} and \boxed{4}", "4"),
        (r"\boxed{\frac{1}{2}} is it.", r"\frac{1}{2}"),
        (r"$\boxed{ \sqrt{\frac{1}{\sqrt{2}}} }$", r"\sqrt{\frac{1}{\sqrt{2}}}"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{\left\{x\right.}", r"\left\{x\right."),
        (r"\boxed{\begin{pmatrix}1\\2\end{pmatrix}}", r"\begin{pmatrix}1\\2\end{pmatrix}"),
        (r"\boxed {7}", "7"),
        (r"\boxed 7 is it", "7"),
        (r"$\boxed 7$", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed{\boxed{7}}", "7"),
        (r"\boxed{x=\{1\}} then more }", r"x=\{1\}"),
        ("no box", None),
        ("", None),
        (r"\boxed{}", None),
        (r"\boxed{ }", None),
        (r"\boxed", None),
        (r"\boxed{1} but then \boxed{\frac{1}{2}", None),
        (r"\boxedness{7}", None),
    ],
)
def test_the_last_box_counts_whole_or_not_at_all(response, answer):
    assert boxed(response) == answer


balanced = st.recursive(
    st.text("0123456789+-x ,", min_size=1),
    lambda inner: inner.map(lambda s: f"{{{s}}}") | st.tuples(inner, inner).map("".join),
)


@given(before=st.text(), inside=balanced, after=st.text(st.characters(exclude_characters="\\")))
def test_whatever_stands_around_a_box_does_not_change_what_is_in_it(before, inside, after):
    assert boxed(f"{before}\\boxed{{{inside}}}{after}") == (inside.strip() or None)


@given(st.text("\\{}boxedf 1$"))
def test_any_text_gives_an_answer_or_none(response):
    answer = boxed(response)
    assert answer is None or (answer == answer.strip() and answer in response)


@pytest.mark.parametrize(
    "response", ["\\boxed{" * 30_000, "\\boxed{" + "{" * 200_000, "{" * 200_000]
)
def test_a_hostile_response_takes_no_time(response):
    began = time.perf_counter()
    assert boxed(response) is None
    assert time.perf_counter() - began < 2
