"""The page in a real browser: nothing from a log runs, nothing is fetched. Skipped without one."""

import json
import random
import re
import shutil
import subprocess

import pytest

import m2po_lab
from m2po_lab.report.directory import write_report

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
ATTACK = (
    "\"'><script>document.title='OWNED'</script><img src=x onerror=\"document.title='OWNED'\">"
    "<svg onload=\"document.title='OWNED'\"></svg>"
    "<a href=\"javascript:document.title='OWNED'\">x</a>"
)


@pytest.fixture
def log(tmp_path):
    """Forty rows with markup in every text field."""
    draw = random.Random(0)
    path = tmp_path / "<svg onload=document.title=1>.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for i in range(40):
            behavior = [-0.8 - 4 * draw.random() for _ in range(8)]
            row = {
                "sequence_id": f"{ATTACK}{i}",
                "uid": f"{ATTACK}{i // 4}",
                "prompt": ATTACK,
                "response": ATTACK,
                "finish_reason": ATTACK,
                "rollout_log_probs": behavior,
                "old_log_probs": [x + draw.gauss(0, 0.3) for x in behavior],
                "advantage": (-1.0) ** i,
                "reward": float(i % 2),
                "step": i // 10,
            }
            stream.write(json.dumps(row) + "\n")
    return path


@pytest.mark.skipif(BROWSER is None, reason="no chromium")
def test_markup_in_every_text_field_executes_nothing_in_a_browser(log, tmp_path):
    page = write_report(m2po_lab.analyze(log).to_dict(), tmp_path / "out")
    done = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, encoding="utf-8", timeout=120,
    )  # fmt: skip
    assert "What to look at" in done.stdout
    (title,) = re.findall(r"<title>(.*?)</title>", done.stdout, flags=re.DOTALL)
    assert title.endswith("M2PO Lab")
    assert "OWNED" in done.stdout
    assert not re.search(r"<(?:script|img|iframe|object|embed|a href=\"javascript)", done.stdout)
