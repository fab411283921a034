"""`m2po-lab data` in one's hands: what it says, what it writes, what it refuses."""

import json

import pyarrow.parquet as pq
import pytest


@pytest.fixture
def files(tmp_path):
    """Local copies of a training and an evaluation set."""
    folder = tmp_path / "hub"
    (folder / "math-ai").mkdir(parents=True)
    rows = [{"problem": f"Find {i}+{i}.", "answer": str(2 * i)} for i in range(5)]
    (folder / "deepscaler.json").write_text(json.dumps([*rows, rows[0], {"problem": "Lost."}]))
    line = {"question": "Find 9+9.", "answer": "18.0"}
    (folder / "math-ai" / "amc23.jsonl").write_text(json.dumps(line) + "\n")
    return folder


def test_it_writes_the_files_and_says_what_it_left_out(call, files, tmp_path):
    done = call("data", "prepare", "--sets", "amc23", "--source", files)
    assert (done.returncode, done.stderr) == (0, "")
    assert "deepscaler       5 of 7 from" in done.stdout
    assert "left out: duplicate, 1 (deepscaler.json: row 6)" in done.stdout
    assert "left out: no answer, 1 (deepscaler.json: row 7)" in done.stdout
    assert "1 rows were read, 40 are published" in done.stdout
    assert pq.read_table(tmp_path / "data" / "train.parquet").num_rows == 5
    assert call("data", "check").stdout == "data is as prepared\n"


def test_check_fails_with_a_remedy_once_a_file_was_changed(call, files, tmp_path):
    call("data", "prepare", "--sets", "amc23", "--source", files, "--quiet")
    (tmp_path / "data" / "train.parquet").write_bytes(b"")
    done = call("data", "check", "data")
    assert done.returncode == 1
    assert done.stdout == (
        "data/train.parquet: has other content than the manifest says; "
        "m2po-lab data prepare --out data\n"
    )


def test_a_set_by_its_own_path_and_without_evaluation(call, files, tmp_path):
    named = f"dapo={files / 'deepscaler.json'}"
    done = call("data", "prepare", "--train", "dapo", "--sets", "none", "--source", named)
    assert done.returncode == 0
    sources = pq.read_table(tmp_path / "data" / "train.parquet")["data_source"].unique()
    assert sources.to_pylist() == ["haizhongzheng/DAPO-Math-17K-cleaned"]


def test_it_lists_the_sets_with_their_hub_ids(call):
    done = call("data", "sets")
    assert len(done.stdout.splitlines()) == 10
    assert "aime25      test       30  yentinglin/aime_2025" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sets", "aime23"], "--sets: 'aime23' is unknown; did you mean aime2"),
        (["--train", "gsm8k"], "--train: 'gsm8k' is unknown; one of dapo, deepscaler"),
        (["--source", "nowhere"], "--source: nowhere is no directory; name a directory"),
        (["--source", "gsm8k=x"], "--source: 'gsm8k' is unknown"),
        (["--source", "aime24=x.json"], "x.json: no such file or directory"),
        (["--repeat", "aime24=0"], "--repeat: aime24=0 is no number of copies"),
        (["--repeat", "deepscaler=2"], "--repeat: 'deepscaler' is unknown"),
    ],
)
def test_what_cannot_be_used_is_one_line(call, arguments, said):
    done = call("data", "prepare", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_without_a_network_it_says_what_to_bring_and_keeps_what_there_is(call, files, tmp_path):
    sets = ["--sets", "amc23,aime24,math500", "--source", files]
    done = call("data", "prepare", *sets, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path / "cache"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    for part in ("aime24, math500: ", "HuggingFaceH4/aime_2024", "hf download", "--source hub"):
        assert part in done.stderr
    assert (tmp_path / "data" / "sets" / "amc23.parquet").exists()
    assert not (tmp_path / "data" / "train.parquet").exists()
