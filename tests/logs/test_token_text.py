import numpy as np
import pytest

from m2po_lab.logs.token_text import token_texts


def texts_of(**row):
    found = token_texts([row], [2])
    return None if found is None else found[0]


@pytest.mark.parametrize(
    "row",
    [
        {"token_text": ["a", " b"]},
        {"token_ids": ["a", " b"]},
        {"token_ids": ["prompt", "a", " b"]},
        {"token_text": np.array(["a", " b"], dtype=object)},
        {"behavior_logp": [[-0.1, 5, "a"], [-0.2, 6, " b"]], "token_ids": [5, 6]},
        {"offsets": [[0, 1], [1, 3]], "response": "a b", "token_ids": [5, 6]},
        {"offsets": [(0, 2), (2, 3), (3, 5)], "prompt": "hi", "response": "a b"},
    ],
)
def test_tokens_read_as_the_log_says(row):
    assert texts_of(**row) == ["a", " b"]


@pytest.mark.parametrize(
    "row",
    [
        {"token_ids": [5, 6], "response": "a b"},
        {"token_text": ["a"]},
        {"token_text": ["a", None]},
        {"behavior_logp": [[-0.1, 5, "a"], [-0.2, 6, None]]},
        {"behavior_logp": [-0.1, -0.2]},
        {"offsets": [[0, 1], [1, 9]], "response": "a b"},
        {"offsets": [[0, 2], [1, 3]], "response": "a b"},
        {"offsets": [[0, 1], [1]], "response": "a b"},
        {"offsets": [[0, 1], [1, 3]]},
        {"offsets": [[0, 3], [3, 4], [4, 6]], "prompt": "hi", "response": "a b"},
        {"offsets": "0,1", "response": "a b"},
    ],
)
def test_texts_that_do_not_fit_are_not_guessed(row):
    assert texts_of(**row) is None


def test_a_row_without_texts_leaves_the_others_theirs():
    assert token_texts([{"token_text": ["a"]}, {}], [1, 3]) == [["a"], None]


def test_half_a_character_is_no_error():
    assert texts_of(token_text=["\ud83d", "b"]) == ["?", "b"]
