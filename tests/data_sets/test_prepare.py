"""Published sets become the files that verl reads; each set is made once, and none by half."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from full_scale.data import Given, Settings, prepare, verify
from full_scale.data.rows import SCHEMA
from full_scale.errors import UnusableError
from tests.data_sets.conftest import save
from tests.data_sets.published import ROWS, rows_of

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("deepscaler", "aime24", "amc23", "olympiad")


def made(tmp_path, hub, names=NAMES, **settings):
    """Prepare, and say what became of each set."""
    states = {}
    given = Given(folders=(hub,))
    manifest = prepare(tmp_path / "out", names, given, Settings(**settings), states.__setitem__)
    return manifest, states


def rows(tmp_path, name):
    return pq.read_table(tmp_path / "out" / name).to_pylist()


def test_rows_have_the_columns_that_verl_reads(tmp_path, hub):
    made(tmp_path, hub)
    for name in ("train.parquet", "test.parquet"):
        assert pq.read_schema(tmp_path / "out" / name).equals(SCHEMA)
    first = rows(tmp_path, "train.parquet")[0]
    question = rows_of("deepscaler", 1)[0]["problem"]
    assert first.pop("prompt")[0]["content"].startswith(question)
    assert first == {
        "data_source": "agentica-org/DeepScaleR-Preview-Dataset",
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": r"\frac{10}{2}"},
        "extra_info": {"split": "train", "index": 0},
    }


def test_aime_is_repeated_and_the_copies_share_their_index(tmp_path, hub):
    made(tmp_path, hub, NAMES)
    found = [
        row["extra_info"]["index"]
        for row in rows(tmp_path, "test.parquet")
        if row["data_source"] == "HuggingFaceH4/aime_2024"
    ]
    assert found == [0, 1, 2] * 4
    made(tmp_path, hub, NAMES, repeat={"aime24": 1})
    assert len(rows(tmp_path, "test.parquet")) == 3 * 3


def test_every_published_layout_becomes_rows(tmp_path):
    for layout in ROWS:
        name = layout.split(" ")[0] if layout.split(" ")[0] in NAMES else "math500"
        path = tmp_path / "published.json"
        path.write_text(json.dumps(rows_of(layout, 2)))
        out = tmp_path / layout.replace(" ", "_")
        prepare(out, [name], Given({name: str(path)}))
        table = pq.read_table(out / "sets" / f"{name}.parquet")
        truths = [each["ground_truth"] for each in table["reward_model"].to_pylist()]
        assert truths == [ROWS[layout][1][1]] * 2


def test_training_loses_duplicates_and_evaluation_problems_and_says_so(tmp_path, hub):
    evaluated = rows_of("amc23", 1)[0]["question"]
    training = [
        *rows_of("deepscaler", 2),
        {"problem": rows_of("deepscaler", 1)[0]["problem"].upper(), "answer": r"\frac{10}{2}"},
        {"problem": f"  {evaluated}", "answer": "142"},
        {"problem": "Which of the two?", "answer": "1"},
        {"problem": "Which of the two?", "answer": "2"},
        {"problem": "Nobody knows.", "answer": None},
        {"answer": "1"},
    ]
    save(hub / "deepscaler.jsonl", training)
    manifest, _ = made(tmp_path, hub)
    entry = manifest["sets"]["deepscaler"]
    assert entry["rows"] == len(rows(tmp_path, "train.parquet")) == 2
    assert {reason: found["rows"] for reason, found in entry["left_out"].items()} == {
        "duplicate": 1,
        "also in amc23": 1,
        "duplicate with another answer": 2,
        "no answer": 1,
        "no question": 1,
    }
    assert entry["left_out"]["also in amc23"]["first"] == ["deepscaler.jsonl: line 4"]
    manifest, _ = made(tmp_path, hub, keep_overlap=True)
    assert manifest["sets"]["deepscaler"]["rows"] == 3
    assert manifest["sets"]["deepscaler"]["kept_although"]["also in amc23"]["rows"] == 1


def test_copies_whose_answers_are_spelled_differently_are_duplicates_and_no_dispute(tmp_path, hub):
    spelled = [{"problem": "Halve it.", "answer": answer} for answer in ("0.5", r"\frac{1}{2}")]
    save(hub / "deepscaler.jsonl", [*rows_of("deepscaler", 1), *spelled])
    entry = made(tmp_path, hub)[0]["sets"]["deepscaler"]
    assert {reason: found["rows"] for reason, found in entry["left_out"].items()} == {
        "duplicate": 1
    }


def test_an_evaluation_set_keeps_its_rows_and_reports_what_is_odd(tmp_path, hub):
    save(hub / "amc23.jsonl", [*rows_of("amc23", 2), rows_of("amc23", 1)[0]])
    entry = made(tmp_path, hub)[0]["sets"]["amc23"]
    assert entry["rows"] == 3
    assert entry["kept_although"]["duplicate"]["rows"] == 1
    assert entry["remarks"] == ["3 rows were read, 40 are published"]


def test_a_file_that_repeats_its_problems_gives_each_once(tmp_path, hub):
    save(hub / "amc23.jsonl", rows_of("amc23", 2) * 4)
    entry = made(tmp_path, hub)[0]["sets"]["amc23"]
    assert (entry["rows"], entry["left_out"]["duplicate"]["rows"]) == (2, 6)


def test_without_a_tokenizer_long_prompts_are_reported_and_not_dropped(tmp_path, hub):
    entry = made(tmp_path, hub, max_prompt=20)[0]["sets"]["deepscaler"]
    assert entry["rows"] == 3
    assert entry["kept_although"]["prompt above 20 bytes"]["rows"] == 3
    assert any("measured in bytes" in remark for remark in entry["remarks"])


def test_a_prompt_that_does_not_ask_for_a_box_is_reported(tmp_path, hub):
    entry = made(tmp_path, hub, instruction="Solve: {question}")[0]["sets"]["deepscaler"]
    assert "3 prompts do not ask for \\boxed{}, which the reward looks for" in entry["remarks"]
    content = rows(tmp_path, "train.parquet")[0]["prompt"][0]["content"]
    assert content == f"Solve: {rows_of('deepscaler', 1)[0]['problem']}"


def test_what_is_done_is_not_made_again_and_the_bytes_are_the_same(tmp_path, hub):
    first, states = made(tmp_path, hub)
    assert "done before" not in states.values()
    second, states = made(tmp_path, hub)
    assert set(states.values()) == {"done before"}
    assert first == second
    assert verify(tmp_path / "out") == []


@pytest.mark.parametrize("change", ["source", "settings", "file"])
def test_a_set_is_made_again_where_something_changed(tmp_path, hub, change):
    made(tmp_path, hub)
    settings = {}
    if change == "source":
        save(hub / "olympiad.jsonl", rows_of("olympiad", 2))
    elif change == "settings":
        settings = {"instruction": "Put the answer in \\boxed{}."}
    else:
        (tmp_path / "out" / "sets" / "olympiad.parquet").write_bytes(b"PAR1")
        assert [problem.problem for problem in verify(tmp_path / "out")] == [
            "has other content than the manifest says"
        ]
    _, states = made(tmp_path, hub, **settings)
    again = {name for name, state in states.items() if state != "done before"}
    # A changed evaluation set makes training compare itself anew.
    expected = {"source": {"olympiad", "deepscaler"}, "settings": set(NAMES), "file": {"olympiad"}}
    assert again == expected[change]
    assert verify(tmp_path / "out") == []


def test_a_set_that_comes_later_is_kept_out_of_training_too(tmp_path, hub):
    save(
        hub / "deepscaler.jsonl",
        [
            *rows_of("deepscaler", 2),
            {"problem": rows_of("amc23", 1)[0]["question"], "answer": "142"},
        ],
    )
    assert made(tmp_path, hub, ["deepscaler"])[0]["sets"]["deepscaler"]["rows"] == 3
    manifest, states = made(tmp_path, hub, ["amc23"])
    assert states == {"amc23": "3 of 3 rows", "deepscaler": "2 of 3 rows"}
    assert manifest["sets"]["deepscaler"]["rows"] == 2


def test_sets_in_ready_prompts_are_compared_by_their_questions(tmp_path, hub):
    questions = [row["question"] for row in rows_of("amc23", 1)]
    questions += [f"{name}, {i}?" for i, name in enumerate(("What", "How", "Which") * 4)]
    ready = [
        {
            "prompt": [{"role": "user", "content": f"Solve this one. {text} Then \\boxed{{}} it."}],
            "reward_model": {"ground_truth": "1"},
        }
        for text in questions
    ]
    save(hub / "dapo.jsonl", ready)
    manifest, _ = made(tmp_path, hub, ["dapo", "amc23"])
    entry = manifest["sets"]["dapo"]
    assert entry["left_out"]["also in amc23"]["rows"] == 1
    assert rows(tmp_path, "train.parquet")[0]["prompt"][0]["content"].startswith("Solve this one.")


KILLED = """
import os, signal, sys
import pyarrow.parquet as pq
from pathlib import Path
from full_scale.data import Given, prepare
write, count = pq.write_table, 0
def killed(table, place, **options):
    global count
    count += 1
    if count == 3:
        Path(place).write_bytes(b"PAR1 half")
        os.kill(os.getpid(), signal.SIGKILL)
    write(table, place, **options)
pq.write_table = killed
prepare(Path(sys.argv[1]), sys.argv[3:], Given(folders=(Path(sys.argv[2]),)))
"""


def test_a_killed_run_leaves_no_half_file_and_the_next_goes_on(tmp_path, hub):
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, out, hub, *NAMES],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    for path in out.rglob("*.parquet"):
        if not path.name.startswith("."):
            pq.read_table(path)
    _, states = made(tmp_path, hub)
    assert sorted(states.values()).count("done before") == 2
    assert verify(out) == []
    assert list(out.rglob(".*")) == []


def test_a_folder_with_another_manifest_is_refused(tmp_path, hub):
    (tmp_path / "out").mkdir()
    for content, said in (("{", "no manifest"), ('{"schema": "other/1"}', "schema 'other/1'")):
        (tmp_path / "out" / "manifest.json").write_text(content)
        with pytest.raises(UnusableError, match=said):
            made(tmp_path, hub)
