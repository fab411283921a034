"""A prepared folder is compared with its manifest; every problem comes with its remedy."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from full_scale.data import Given, prepare, verify


@pytest.fixture
def out(tmp_path, hub):
    prepare(tmp_path / "out", ["deepscaler", "amc23"], Given(folders=(hub,)))
    return tmp_path / "out"


def test_a_folder_as_prepared_has_no_problem(out):
    assert verify(out) == []


def test_every_problem_is_one_line_that_ends_in_a_command(out, tmp_path):
    (out / "train.parquet").unlink()
    pq.write_table(pa.table({"prompt": ["x"]}), out / "test.parquet")
    (out / "sets" / "amc23.parquet").write_bytes(b"")
    problems = verify(out)
    assert [problem.place for problem in problems] == [
        str(out / name) for name in ("train.parquet", "test.parquet", "sets/amc23.parquet")
    ]
    for folder, found in ((out, problems), (tmp_path / "nowhere", verify(tmp_path / "nowhere"))):
        for problem in found:
            assert str(problem).endswith(f"; m2po-lab data prepare --out {folder}")
            assert "\n" not in str(problem)


def test_a_folder_without_an_evaluation_set_says_which_would_do(tmp_path, hub):
    prepare(tmp_path / "out", ["deepscaler"], Given(folders=(hub,)))
    (problem,) = verify(tmp_path / "out")
    assert problem.place.endswith("test.parquet")
    assert problem.problem.startswith("holds none of aime24, aime25")


def test_files_made_of_older_sets_are_found(out):
    path = out / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"]["test.parquet"]["made_of"]["amc23"]["sha256"] = "0"
    manifest["sets"]["deepscaler"]["made_with"]["compared_with"]["amc23"] = "0"
    path.write_text(json.dumps(manifest))
    assert [problem.problem for problem in verify(out)] == [
        "was made of an older amc23",
        "deepscaler was compared with an older amc23",
    ]


@pytest.mark.parametrize("content", ["", "[]", '{"schema": "m2po-lab/data/2"}'])
def test_a_manifest_that_is_none_is_a_problem_and_no_exception(out, content):
    (out / "manifest.json").write_text(content)
    (problem,) = verify(out)
    assert problem.place.endswith("manifest.json")
