"""Generations are read in the layouts that evaluation tools write."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from full_scale.errors import UnusableError
from full_scale.evaluation import read

DUMP = {
    "input": "user\nFind 1+1.\nassistant\n",
    "output": r"\boxed{2}",
    "gts": "2",
    "score": 1.0,
    "step": 50,
    "reward": 1.0,
    "acc": 1.0,
    "uid": "3f2c_0_0",
}
HARNESS = {
    "doc_id": 7,
    "doc": {"problem": "Find 1+1.", "answer": "2"},
    "target": "2",
    "arguments": {"gen_args_0": {"arg_0": "Find 1+1."}},
    "resps": [["It is 2."]],
    "filtered_resps": ["2"],
    "filter": "none",
    "exact_match": 1.0,
}
QWEN = {
    "idx": 0,
    "question": "Find 1+1.",
    "gt": "2",
    "answer": "2",
    "code": ["a", "b", "c"],
    "pred": ["2", "3", "2"],
    "score": [True, False, True],
}
SERVER = {
    "data_source": "math-ai/amc23",
    "prompt": [{"role": "user", "content": "Find 1+1."}],
    "reward_model": {"style": "rule", "ground_truth": "2"},
    "extra_info": {"split": "test", "index": 3},
    "responses": ["a", "b"],
}
OWN = {
    "data_source": "math-ai/amc23",
    "index": 3,
    "question": "Find 1+1.",
    "response": "x",
    "ground_truth": "2",
    "tokens": 1,
}
BARE = {"dataset": "aime24", "problem_id": 3, "correct": False}

LAYOUTS = {
    "verl dump": (DUMP, [(None, "user\nFind 1+1.\nassistant\n", r"\boxed{2}", "2", True, 50)]),
    "harness": (HARNESS, [(None, "Find 1+1.", "It is 2.", "2", True, None)]),
    "qwen": (
        QWEN,
        [
            (None, "Find 1+1.", text, "2", right, None)
            for text, right in zip("abc", (True, False, True), strict=True)
        ],
    ),
    "server": (
        SERVER,
        [("math-ai/amc23", "Find 1+1.", text, "2", None, None) for text in "ab"],
    ),
    "own": (OWN, [("math-ai/amc23", "Find 1+1.", "x", "2", None, None)]),
    "scores alone": (BARE, [("aime24", "3", None, None, False, None)]),
}


def found(path, **options):
    return [
        (s.dataset, s.problem, s.response, s.truth, s.right, s.step)
        for s in read([str(path)], **options)
    ]


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_row_gives_its_samples(tmp_path, name):
    row, expected = LAYOUTS[name]
    (tmp_path / "g.jsonl").write_text(json.dumps(row) + "\n")
    assert found(tmp_path / "g.jsonl") == expected
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "g.parquet")
    assert found(tmp_path / "g.parquet") == expected


def test_the_harness_writes_a_line_a_filter_and_the_first_filter_counts(tmp_path):
    rows = [{**HARNESS, "filter": name} for name in ("strict", "flexible")]
    (tmp_path / "g.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(found(tmp_path / "g.jsonl")) == 1


@pytest.mark.parametrize(
    ("score", "right"),
    [(1, True), (1.0, True), (0.10000000149, False), (0.1, False), (0, False), (-1.0, False)],
)
def test_a_reward_of_one_is_right_and_that_of_a_readable_answer_is_not(tmp_path, score, right):
    (tmp_path / "g.jsonl").write_text(json.dumps({"question": "x", "score": score}) + "\n")
    ((*_, is_right, _),) = found(tmp_path / "g.jsonl")
    assert is_right is right


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"question": "x", "score": 0.5}, "score 0.5 is none of 1, 0.1, 0, -1"),
        ({"question": "x", "score": "yes"}, "score 'yes' is none of"),
        ({"question": "x"}, "no response and no score among question"),
        ({"score": 1}, "does not say which problem it is of"),
        ({"question": "x", "responses": ["a", "b"], "score": 1}, "1 scores of 2; --rescore"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_with_its_place(tmp_path, row, said):
    (tmp_path / "g.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(UnusableError, match=rf"g\.jsonl: line 1: {said}"):
        found(tmp_path / "g.jsonl")


def test_rescoring_leaves_scores_aside(tmp_path):
    row = {"question": "x", "responses": ["a", "b"], "score": 0.5, "answer": "1"}
    (tmp_path / "g.jsonl").write_text(json.dumps(row) + "\n")
    assert [each[4] for each in found(tmp_path / "g.jsonl", rescore=True)] == [None, None]
