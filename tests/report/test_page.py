import base64
import csv
import hashlib
import io
import json
import re
from html.parser import HTMLParser

import pytest

from m2po_lab.report.directory import write_report
from m2po_lab.report.figures import FIGURES
from m2po_lab.report.page import page
from m2po_lab.report.plots import Drawn, draw
from tests.report import examples

ATTACK = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&lt;{{7*7}}<svg onload=alert(1)>"


class Elements(HTMLParser):
    """Every element of a page with its attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def attacked(value):
    """Put markup into every text field of a report that can come from a log."""
    report = examples.full()
    report["inputs"][0].update(path=value, columns={"behavior": value})
    report["findings"] = [
        examples.finding(title=value, message=value, advice=value, evidence={"row": value})
    ]
    report["not_computable"] = [{"what": value, "needs": value}]
    texts = {"row_id": value, "text": value, "response": value, "response_at": [0, 5]}
    context = [{**other, "text": value} for other in report["worst"][0]["context"]]
    report["worst"] = [{**report["worst"][0], **texts, "context": context}]
    return report


@pytest.fixture(scope="module")
def drawn():
    return draw(examples.full(), FIGURES)


def test_markup_in_a_log_stays_text(drawn):
    harmless, hostile = page(examples.full(), drawn), page(attacked(ATTACK), drawn)
    allowed = {tag for tag, _ in Elements(harmless).found}
    assert {tag for tag, _ in Elements(hostile).found} <= allowed
    assert "script" not in allowed
    assert "{{7*7}}" in hostile
    assert "&lt;script&gt;" in hostile


def test_the_page_needs_nothing_but_itself(drawn):
    text = page(examples.full(), drawn)
    for _, attributes in Elements(text).found:
        assert not {name for name in attributes if name.startswith("on") or name == "style"}
        for name in ("src", "href", "xlink:href", "action", "data"):
            assert attributes.get(name, "#").startswith(("#", "data:image/"))
    assert not re.search(r"@import|url\((?!#)", text)


def test_the_content_policy_allows_only_the_style_sheet_of_the_page(drawn):
    text = page(examples.full(), drawn)
    policy = next(
        a["content"] for tag, a in Elements(text).found if a.get("http-equiv") and tag == "meta"
    )
    (style,) = re.findall(r"<style>(.*?)</style>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:;")
    assert "unsafe" not in policy


def test_every_figure_is_drawn_has_its_numbers_beside_it_and_unique_ids(drawn):
    assert {d.figure.name for d in drawn} == {f.name for f in FIGURES}
    ids = [a["id"] for _, a in Elements(page(examples.full(), drawn)).found if "id" in a]
    assert len(ids) == len(set(ids))
    for item in drawn:
        assert len(item.csv.splitlines()) == len(item.rows) + 1
        assert item.png.startswith(b"\x89PNG")


def test_figures_are_the_same_bytes_for_the_same_report(drawn):
    again = draw(examples.full(), FIGURES)
    assert [(d.svg, d.png) for d in again] == [(d.svg, d.png) for d in drawn]


def test_figures_follow_the_theme(drawn):
    for item in drawn:
        assert "var(--ink)" in item.svg
        assert not re.search(r'(?:fill|stroke)="#', item.svg)


def test_a_report_without_log_probs_still_makes_a_page(tmp_path):
    place = write_report(examples.bare(), tmp_path / "new" / "report")
    text = place.read_text(encoding="utf-8")
    assert "Partial" in text
    assert "Not computable" in text
    assert {p.name for p in place.parent.iterdir()} == {
        "report.html", "report.json", "report.txt", "figures",
    }  # fmt: skip


def test_other_files_in_the_directory_are_left_alone(tmp_path):
    (tmp_path / "notes.md").write_text("mine", encoding="utf-8")
    write_report(examples.bare(), tmp_path)
    write_report(examples.bare(), tmp_path)
    assert (tmp_path / "notes.md").read_text(encoding="utf-8") == "mine"
    assert not list(tmp_path.rglob(".*"))


def test_the_page_has_every_objective_and_the_terminal_says_so(drawn):
    report = examples.full()
    report["objectives"].update({f"o{i}": report["objectives"]["ppo"] for i in range(30)})
    assert ">o29</th>" in page(report, drawn)


def test_each_token_of_a_context_is_coloured_by_what_m2po_does_to_it(drawn):
    spans = [a for tag, a in Elements(page(examples.full(), drawn)).found if tag == "span"]
    noted = [a for a in spans if a.get("title")]
    assert [a["class"] for a in noted] == ["", "worst masked", "active", "unsure"]
    assert noted[1]["title"] == "position 1, token 101, d -10.68, A -1, masked"


def test_the_response_is_shown_around_the_token_and_says_where_it_was_cut(drawn):
    text = page(examples.full(), drawn)
    assert "…t0<mark> t1</mark> t2 t3…" in text
    assert "Response, characters 8 to 18 of 40." in text
    report = examples.full()
    report["worst"][0].update(response_start=0, response_characters=11, response_at=None)
    text = page(report, drawn)
    assert "<mark>" not in text
    assert "the whole of it; the log does not say where in it the token stands" in text


def test_every_figure_lies_beside_the_page_as_png_csv_and_json(tmp_path):
    write_report(examples.full(), tmp_path)
    folder = tmp_path / "figures"
    assert {"objectives", "worst", "overlap", "by_lag"} <= {p.stem for p in folder.iterdir()}
    for figure in FIGURES:
        assert (folder / f"{figure.name}.png").read_bytes().startswith(b"\x89PNG")
        table = (folder / f"{figure.name}.csv").read_text(encoding="utf-8")
        rows = list(csv.DictReader(io.StringIO(table)))
        data = json.loads((folder / f"{figure.name}.json").read_text(encoding="utf-8"))["rows"]
        assert len(rows) == len(data) > 0
        assert list(rows[0]) == list(data[0])


@pytest.mark.parametrize("start", ["=", "+", "-", "@", " =", "\t="])
def test_no_text_of_a_log_is_a_formula_in_a_spreadsheet(start):
    rows = [{"row_id": f"{start}cmd|' /C calc'!A0", "d": -10.68, "keep": None}]
    (cells,) = csv.DictReader(io.StringIO(Drawn(FIGURES[0], rows, {}, "", b"").csv))
    assert cells["row_id"].lstrip()[0] not in "=+-@"
    assert "calc" in cells["row_id"]
    assert (cells["d"], cells["keep"]) == ("-10.68", "")
