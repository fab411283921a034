"""Sets come from the Hugging Face hub by its own client; the hub here is a small stand-in."""

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from full_scale.data import SETS

SHA = "0123456789abcdef0123456789abcdef01234567"
AMC = "".join(
    json.dumps({"id": i, "question": f"Find {i}+{i}.", "answer": float(2 * i)}) + "\n"
    for i in range(3)
)
FILES = {"README.md": "# card", "test.jsonl": AMC, "plot.png": "png"}


class Hub(BaseHTTPRequestHandler):
    """Answers about one repository what the client asks before and while it downloads."""

    asked = ()

    def do_HEAD(self):
        self.do_GET(body=False)

    def do_GET(self, body=True):
        Hub.asked.append(self.path)
        hub_id = SETS["amc23"].hub_id
        if re.match(rf"/api/datasets/{hub_id}/tree/", self.path):
            tree = [
                {"type": "file", "path": name, "size": len(text), "oid": digest(text)}
                for name, text in FILES.items()
            ]
            return self._send(json.dumps(tree), "application/json", body)
        if re.match(rf"/api/datasets/{hub_id}(/revision/|$)", self.path):
            files = [{"rfilename": name} for name in FILES]
            info = {"_id": "1", "id": hub_id, "sha": SHA, "siblings": files}
            return self._send(json.dumps(info), "application/json", body)
        if match := re.match(rf"/datasets/{hub_id}/resolve/{SHA}/(.*)", self.path):
            return self._send(FILES[match[1]], "text/plain", body)
        return self.send_error(404)

    def _send(self, text, kind, body):
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{digest(text)}"')
        self.send_header("X-Repo-Commit", SHA)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *_):
        """Say nothing."""


def digest(text):
    return hashlib.sha1(text.encode()).hexdigest()


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command against the stand-in, with a cache of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(Hub, "asked", [])
    address = f"http://127.0.0.1:{server.server_port}"
    environment = os.environ | {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "cache")}

    def prepare(*sets):
        arguments = ["data", "prepare", "--train", "", "--sets", ",".join(sets)]
        return subprocess.run(
            [sys.executable, "-m", "m2po_lab", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )

    yield prepare
    server.shutdown()
    server.server_close()


def test_a_set_is_fetched_once_with_its_revision_and_only_files_with_rows(tmp_path, run):
    done = run("amc23")
    assert (done.returncode, done.stderr) == (0, "")
    assert "amc23            3 of 3 from math-ai/amc23 at 0123456789ab" in done.stdout
    entry = json.loads((tmp_path / "data" / "manifest.json").read_text())["sets"]["amc23"]
    assert entry["source"] == {
        "kind": "hub",
        "id": "math-ai/amc23",
        "revision": SHA,
        "files": {"test.jsonl": hashlib.sha256(AMC.encode()).hexdigest()},
    }
    assert not [path for path in Hub.asked if path.endswith(("README.md", "plot.png"))]
    Hub.asked.clear()
    assert run("amc23").returncode == 0
    assert Hub.asked == []


def test_sets_that_the_hub_does_not_have_are_named_with_what_to_do(tmp_path, run):
    done = run("amc23", "minerva", "aime24")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "m2po-lab: aime24, minerva: HuggingFaceH4/aime_2024 cannot be had"
    )
    assert "hf download" in done.stderr
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "data" / "sets" / "amc23.parquet").exists()
