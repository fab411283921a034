"""Finding the files of a log: paths, globs, directories, addresses, and what is passed over."""

import pickle
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest

from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.open import open_log
from tests.logs.helpers import read

Write = Callable[..., Path]
ROW = {"logprobs": [-1.0, -2.0], "old_log_probs": [-1.0, -2.0]}


def test_a_directory_is_read_in_natural_order_without_hidden_and_temporary_files(
    write: Write, tmp_path: Path
) -> None:
    for name in ("10.jsonl", "9.jsonl", ".8.jsonl", "7.jsonl.tmp", "_old/6.jsonl", "5.jsonl~"):
        write(ROW, name=name)
    batch, log = read(tmp_path)
    assert batch.rows.step.tolist() == [9, 10]
    assert log.inputs[0].files == 2


def test_other_files_in_a_directory_are_passed_over(write: Write, tmp_path: Path) -> None:
    write(ROW, name="1.jsonl")
    write("hello", name="README.md")
    write("", name="STABLE")
    assert read(tmp_path)[0].n_rows == 1


def test_globs_lists_and_repeats_are_read_once_each(write: Write, tmp_path: Path) -> None:
    write(ROW, name="a/1.jsonl")
    write(ROW, ROW, name="b/2.jsonl")
    assert read(tmp_path / "*" / "*.jsonl")[0].n_rows == 3
    batch, log = read(tmp_path / "a", tmp_path / "b")
    assert batch.n_rows == 3
    assert [entry.rows for entry in log.inputs] == [1, 2]


def test_a_file_named_twice_counts_once(write: Write, tmp_path: Path) -> None:
    path = write(ROW, name="1.jsonl")
    assert read(path, path, tmp_path)[0].n_rows == 1


def test_an_address_of_another_file_system_is_read() -> None:
    with fsspec.open("memory://run/step_4/log.jsonl", "w") as stream:
        stream.write('{"logprobs": [-1.0]}\n')
    batch, log = read("memory://run")
    assert batch.rows.step.tolist() == [4]
    assert log.inputs[0].path == "memory://run"


@pytest.mark.parametrize("name", ["nothing", "no*match.jsonl"])
def test_a_path_without_a_file_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnreadableLogError, match=r"no such file|matches no file"):
        open_log(tmp_path / name)


def test_an_empty_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableLogError, match="holds no file"):
        open_log(tmp_path)


@pytest.mark.parametrize("content", ["plain text\n", '{"a": 1}\n', "\x00\x01\x02", "[1, 2]"])
def test_an_unknown_format_is_an_error_in_one_line(write: Write, content: str) -> None:
    with pytest.raises(UnreadableLogError, match="unknown format") as caught:
        open_log(write(content, name="file.bin"))
    assert "\n" not in str(caught.value)


def test_an_unknown_format_name_lists_the_known_ones(write: Write) -> None:
    with pytest.raises(UnreadableLogError, match=r"'csv'.*jsonl.*native"):
        open_log(write(ROW), format="csv")


def test_parts_together_hold_the_log_and_travel_to_other_processes(
    write: Write, tmp_path: Path
) -> None:
    for step in range(3):
        write(ROW, name=f"{step}.jsonl")
    parts = [pickle.loads(pickle.dumps(part)) for part in open_log(tmp_path).parts()]
    assert [sum(b.n_rows for b in part) for part in parts] == [1, 1, 1]


def test_a_log_says_it_is_partial_until_its_last_batch_is_taken(write: Write) -> None:
    log = open_log(write(ROW, ROW, ROW), batch_tokens=2)
    batches = iter(log)
    next(batches)
    assert log.partial
    list(batches)
    assert not log.partial


def test_many_small_files_are_joined_into_few_batches(write: Write, tmp_path: Path) -> None:
    for step in range(30):
        write(ROW, name=f"{step}.jsonl")
    (batch,) = list(open_log(tmp_path))
    assert batch.rows.step.tolist() == list(range(30))
    assert {Path(s).name for s in batch.rows.source} >= {"0.jsonl", "29.jsonl"}


def test_the_error_is_one_printable_line_even_with_markup_in_names() -> None:
    error = UnreadableLogError("a\nb\x1b[31m", "bad\r\nthing", "do\tthis")
    assert "\n" not in str(error)
    assert "\x1b" not in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
