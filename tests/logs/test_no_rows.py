"""Files without a row, rows behind malformed lines, and what is left of files cut short."""

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.open import open_log

ROW = '{"rollout_log_probs": [-0.5, -1.0], "old_log_probs": [-0.4, -1.1]}\n'

EMPTY = {
    "nothing": ("", "it is empty"),
    "blank lines": ("\n \n\t\r\n", "every line is blank"),
    "zero bytes": ("\0" * 50 + "\n", "every line is blank"),
    "null": ("null\n" * 3, "no line holds a row"),
    "scalars": ('1\n"x"\ntrue\n', "no line holds a row"),
    "objects without a field": ("{}\n{}\n", "no line holds a row"),
    "an empty array": ("[]", "no line holds a row"),
    "a row cut short": (ROW[:30], "its only line is cut short"),
}


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(("text", "reason"), EMPTY.values(), ids=EMPTY)
def test_a_file_without_a_row_is_not_of_an_unknown_format(
    tmp_path: Path, text: str, reason: str, skip: bool
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(text.encode())
    with pytest.raises(UnreadableLogError, match=f"no readable row, {reason}; "):
        list(open_log(path, skip_bad_rows=skip))


def test_text_that_is_no_json_stays_an_unknown_format(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("no log\n" * 9)
    with pytest.raises(UnreadableLogError, match="unknown format"):
        list(open_log(path))


@pytest.mark.parametrize("line", ["null", "3", '"text"', "{}"])
@pytest.mark.parametrize("count", [1, 12])
def test_rows_behind_lines_that_hold_none_are_read(tmp_path: Path, line: str, count: int) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f"{line}\n" * count + ROW * 3)
    log = open_log(path, skip_bad_rows=True)
    rows = sum(batch.n_rows for batch in log)
    assert rows + log.bad_rows == count + 3
    if line != "{}":
        assert rows == 3
        with pytest.raises(UnreadableLogError, match=r"log\.jsonl:1: .* is no JSON object; "):
            list(open_log(path))


def test_blank_lines_before_the_first_row_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n" * 20 + ROW * 3)
    log = open_log(path)
    assert (sum(batch.n_rows for batch in log), log.bad_rows) == (3, 0)


def zstd(data: bytes) -> bytes:
    """One zstd frame."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def noise(rows: int) -> bytes:
    """Rows that hardly compress, so that they fill many blocks."""
    rng = np.random.default_rng(0)
    lines = (json.dumps({"logprobs": (-rng.random(40)).tolist()}) for _ in range(rows))
    return "\n".join(lines).encode() + b"\n"


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_what_a_half_written_compressed_file_holds_is_kept(
    tmp_path: Path, compress, share: float
) -> None:
    packed = compress(noise(1500))
    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(packed[: int(share * len(packed))])
    log = open_log(path)
    rows = sum(batch.n_rows for batch in log)
    # zstd gives whole blocks of 128 KiB, here about 150 rows each.
    assert share * 1500 - 200 < rows < share * 1500 + 1
    assert log.bad_rows == 1
    assert log.inputs[0].remarks == [f"{path}:{rows + 1} is cut short"]


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
def test_a_compressed_file_cut_before_its_first_row_says_so(tmp_path: Path, compress) -> None:
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(compress(noise(1500))[:60])
    with pytest.raises(UnreadableLogError, match=r"no readable row, .*cut short"):
        list(open_log(path))
