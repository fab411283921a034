"""Rows come out of a file the same, whatever kind of file it is."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from full_scale.data.files import rows, sources
from full_scale.errors import UnusableError
from m2po_lab.logs.errors import UnreadableLogError

ROWS = [
    {"question": "Find 1.", "final_answer": ["1"], "level": 3},
    {"question": "Find 2.", "final_answer": ["2"], "level": 4},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
WRITTEN = {
    "array.json": json.dumps(ROWS),
    "indented.json": json.dumps(ROWS, indent=2),
    "lines.jsonl": LINES,
    "lines.json": LINES,
    "named.json": json.dumps({"version": "1.0", "data": ROWS}),
    "splits.json": json.dumps({"test": ROWS}),
    "columns.json": json.dumps(COLUMNS),
    "viewer.json": json.dumps({"rows": [{"row_idx": 0, "row": row} for row in ROWS]}),
}


def read(path, split="test"):
    return [row for source in sources(str(path), split) for _, row in rows(source)]


@pytest.mark.parametrize("name", WRITTEN)
def test_every_shape_of_json_gives_the_rows(tmp_path, name):
    (tmp_path / name).write_text(WRITTEN[name])
    assert read(tmp_path / name) == ROWS


@pytest.mark.parametrize("row", [ROWS[0], {"prompt": [{"role": "user", "content": "Find 1."}]}])
def test_the_only_line_of_a_file_is_a_row_even_if_it_holds_lists(tmp_path, row):
    (tmp_path / "one.jsonl").write_text(json.dumps(row) + "\n")
    assert read(tmp_path / "one.jsonl") == [row]


def test_parquet_and_gzip_give_the_rows(tmp_path):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    assert read(tmp_path / "rows.parquet") == ROWS
    with gzip.open(tmp_path / "rows.jsonl.gz", "wt") as stream:
        stream.write(LINES)
    assert read(tmp_path / "rows.jsonl.gz") == ROWS


def test_of_a_folder_the_files_of_the_split_are_read(tmp_path):
    (tmp_path / "data").mkdir()
    for split, row in zip(("train", "test"), ROWS, strict=True):
        pq.write_table(
            pa.Table.from_pylist([row]), tmp_path / "data" / f"{split}-00000-of-00001.parquet"
        )
    (tmp_path / "README.md").write_text("# card")
    (tmp_path / "dataset_infos.json").write_text("{}")
    assert read(tmp_path, "train") == ROWS[:1]
    assert read(tmp_path, "test") == ROWS[1:]


def test_a_file_that_no_split_names_is_of_every_split(tmp_path):
    (tmp_path / "latest.jsonl").write_text(LINES)
    assert read(tmp_path, "train") == read(tmp_path, "test") == ROWS


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("rows.jsonl", LINES[:-5], "cut short"),
        ("rows.jsonl", LINES.replace("}", "", 1), "is no JSON"),
        ("rows.parquet", "PAR1 and no more", "no complete Parquet file"),
    ],
)
def test_a_broken_file_is_refused_with_its_name(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises((UnusableError, UnreadableLogError), match=rf"{name}.*{said}"):
        read(tmp_path / name)


def test_a_folder_without_rows_of_the_split_is_refused(tmp_path):
    (tmp_path / "train.jsonl").write_text(LINES)
    (tmp_path / "card.md").write_text("x")
    with pytest.raises(UnusableError, match="no file with rows of the split test"):
        read(tmp_path, "test")
