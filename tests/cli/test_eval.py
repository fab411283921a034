"""`m2po-lab eval` in one's hands."""

import json

import pytest

RECIPE = "qwen2.5-math-7b-m2po-s256"


@pytest.fixture
def generations(tmp_path):
    """A problem that was solved twice of four times, and one never."""
    rows = [
        {"data_source": "math-ai/amc23", "question": f"Find {i}.", "acc": right}
        for i, rights in enumerate(((1, 0, 1, 0), (0, 0, 0, 0)))
        for right in rights
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_it_prints_averages_with_intervals_and_the_papers_number(call, generations):
    done = call("eval", generations, "--recipe", RECIPE)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("AMC23  "))
    assert line.split()[:5] == ["AMC23", "2", "8", "@4", "25.0"]
    assert line.split()[-2:] == ["63.8", "-38.8"]
    assert "AMC23: 2 of 40 problems" in done.stdout
    assert "| M2PO s=256 |  |  | 25.0 |  |  |  |  |  |  |" in done.stdout


def test_json_on_standard_output_is_nothing_but_json(call, generations):
    done = call("eval", generations, "--json", "-", "--k", "4")
    found = json.loads(done.stdout)
    assert found["schema"] == "m2po-lab/eval/1"
    assert found["sets"]["amc23"]["pass"][0]["percent"] == 50
    assert found["average"]["percent"] is None


def test_the_table_takes_results_and_leaves_the_rest_empty(call, generations, tmp_path):
    call("eval", generations, "--recipe", RECIPE, "--json", "result.json", "--quiet")
    shown = call("eval", "--table", "result.json").stdout
    assert shown.count("ours") == 22 + 1
    (mine,) = (line for line in shown.splitlines() if "25.0" in line and "ours" in line)
    assert mine.split() == ["ours", "25.0"]
    assert call("eval", "--table").stdout.count("ours\n") == 22


def test_a_dump_of_verl_finds_its_sets_in_prepared_data(call, tmp_path):
    rows = [{"problem": f"Find {i}+{i}.", "answer": 2 * i} for i in range(3)]
    (tmp_path / "aime24.json").write_text(json.dumps(rows))
    call("data", "prepare", "--train", "", "--sets", "aime24", "--source", tmp_path, "--quiet")
    dump = [
        {
            "input": f"user\n{row['problem']}\n\nBox it.\nassistant\n",
            "output": rf"\boxed{{{row['answer'] + i}}}",
            "gts": str(row["answer"]),
            "score": 1.0 if i == 0 else 0.1,
            "step": 50,
        }
        for row in rows
        for i in range(4)
    ]
    (tmp_path / "validation").mkdir()
    text = "".join(json.dumps(row) + "\n" for row in dump)
    (tmp_path / "validation" / "50.jsonl").write_text(text)
    for more in ([], ["--rescore"]):
        done = call("eval", "validation", "--data", "data", "--json", "-", *more)
        found = json.loads(done.stdout)
        assert found["sets"]["aime24"]["avg"]["percent"] == 25
        assert found["step"] == 50


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "FILES: no generations were named"),
        (["nowhere.jsonl"], "nowhere.jsonl: no such file or directory"),
        (["answers.jsonl", "--recipe", "qwen"], "RECIPE: 'qwen' is unknown"),
        (["answers.jsonl", "--k", "0"], "--k: '0' is no number of samples"),
        (["answers.jsonl", "--step", "first"], "--step: 'first' is no step"),
        (["answers.jsonl", "--data", "nowhere"], "nowhere: holds no prepared set"),
        (["--model", "x"], "--model: has no problems to answer; --data FOLDER"),
        (["--table", "answers.jsonl"], "answers.jsonl: no result of m2po-lab eval"),
    ],
)
def test_what_cannot_be_used_is_one_line(call, generations, arguments, said):
    done = call("eval", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
