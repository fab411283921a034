"""The page in a real browser: nothing from a log runs or is fetched, no width scrolls sideways."""

import json
import os
import random
import re
import shutil
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

import m2po_lab
from m2po_lab.report.directory import write_report

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
PHONE, DESKTOP = 390, 1280


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Give a function that runs Chromium on a page and returns what it printed."""
    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if binary is None:
        message = "no chromium on the PATH; apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    profile = tmp_path_factory.mktemp("profile")

    def run(page, *flags):
        return subprocess.run(
            [binary, *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()],
            capture_output=True, text=True, encoding="utf-8", timeout=300, check=True,
        ).stdout  # fmt: skip

    return run


@pytest.fixture(scope="module")
def visits():
    """Give an address that notes who comes, and the notes."""
    seen = []

    class Notes(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Notes) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()
        thread.join()


def attack(address):
    """Markup that would change the title or fetch something if any of it were markup."""
    own = "document.title='OWNED'"
    return (
        f"\"'><script>{own}</script><script src={address}/script></script>"
        f'<img src={address}/image onerror="{own}"><svg onload="{own}"></svg>'
        f"<style>@import url({address}/style);</style><link rel=stylesheet href={address}/link>"
        f"<iframe src={address}/frame></iframe><meta http-equiv=refresh content='0;{address}/go'>"
        f'<a href="javascript:{own}">x</a>{{{{7*7}}}}'
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory, visits):
    """The report on forty rows with markup in every text field."""
    folder = tmp_path_factory.mktemp("hostile")
    draw, text = random.Random(0), attack(visits[0])
    log = folder / "<svg onload=document.title=1>.jsonl"
    with log.open("w", encoding="utf-8") as stream:
        for i in range(40):
            behavior = [-0.8 - 4 * draw.random() for _ in range(8)]
            row = {
                "sequence_id": f"{text}{i}",
                "uid": f"{text}{i // 4}",
                "prompt": text,
                "response": text * 8,
                "token_text": [text] * 8,
                "finish_reason": text,
                "rollout_log_probs": behavior,
                "old_log_probs": [x + draw.gauss(0, 0.3) for x in behavior],
                "entropy": [draw.random() for _ in range(8)],
                "advantage": (-1.0) ** i,
                "reward": float(i % 2),
                "step": i // 10,
            }
            stream.write(json.dumps(row) + "\n")
    metrics = folder / "metrics.jsonl"
    lines = [{"step": i, "data": {f"reward/{text}": 0.1 * i, "reward": 0.1}} for i in range(4)]
    metrics.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return write_report(m2po_lab.analyze([log, metrics]).to_dict(), folder / "out")


def test_markup_in_every_text_field_executes_nothing_and_fetches_nothing(browser, page, visits):
    shown = browser(page, "--dump-dom")
    assert "What to look at" in shown
    (title,) = re.findall(r"<title>(.*?)</title>", shown, flags=re.DOTALL)
    assert title.endswith("M2PO Lab")
    assert "OWNED" in shown
    assert not re.search(r"<(?:script|img|iframe|object|embed|link|a href=\"javascript)", shown)
    assert visits[1] == []


def test_the_notes_would_show_a_visit(browser, tmp_path, visits):
    address, seen = visits
    (tmp_path / "open.html").write_text(attack(address), encoding="utf-8")
    browser(tmp_path / "open.html", "--dump-dom")
    assert seen
    seen.clear()


def test_the_page_fits_a_phone_and_a_desktop_without_scrolling_sideways(browser, page, tmp_path):
    """A page with frames of both widths measures what is in them."""
    (tmp_path / "wide.html").write_text(f"<div style='width:{2 * PHONE}px'>x</div>")
    shown = ((PHONE, page), (DESKTOP, page), (PHONE, tmp_path / "wide.html"))
    frames = "".join(
        f'<iframe width="{width}" height="800" src="{inner.as_uri()}"></iframe>'
        for width, inner in shown
    )
    script = (
        "onload = () => { document.title = [...document.querySelectorAll('iframe')]"
        ".map(f => f.contentDocument.documentElement.scrollWidth).join() }"
    )
    (tmp_path / "frames.html").write_text(f"{frames}<script>{script}</script>", encoding="utf-8")
    text = browser(tmp_path / "frames.html", "--allow-file-access-from-files", "--dump-dom")
    (widths,) = re.findall(r"<title>(.*?)</title>", text)
    phone, desktop, wide = map(int, widths.split(","))
    assert 0 < phone <= PHONE
    assert 0 < desktop <= DESKTOP
    assert wide > PHONE


def test_the_page_prints(browser, page, tmp_path):
    browser(page, f"--print-to-pdf={tmp_path / 'page.pdf'}")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
