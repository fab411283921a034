"""A notebook in JupyterLab in a real browser: it runs, and a slider redraws its picture."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from notebooks import run

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,1600",
)
NAME = "01_importance_weights"
TOKEN = "secret"
SETTINGS = {
    "ServerApp": {"port": 0, "allow_root": True},
    "IdentityProvider": {"token": TOKEN},
    "LabApp": {"expose_app_in_browser": True},
}
SECONDS = 240
"""Limit of each wait; on two free cores the whole test takes a fraction of it."""
READY = """
const panel = window.jupyterapp?.shell.currentWidget;
return panel?.context?.isReady && panel.sessionContext.session?.kernel?.status === 'idle';
"""
RUN = """
window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')
  .then(() => window.jupyterapp.commands.execute('notebook:run-all-cells'));
"""
CODE = """
const cells = window.jupyterapp.shell.currentWidget.content.widgets;
return cells.map((c, i) => [i, c.model.type, c.model.executionCount, c.model.sharedModel.source])
  .filter(row => row[1] === 'code');
"""
SHOW = """
const notebook = window.jupyterapp.shell.currentWidget.content;
notebook.activeCellIndex = arguments[0];
notebook.scrollToItem(arguments[0], 'start');
"""
ACTIVE = ".jp-Notebook .jp-Cell.jp-mod-active"
PICTURE = f"{ACTIVE} .jp-RenderedImage img"
HANDLE = f"{ACTIVE} .noUi-handle"


@pytest.fixture
def server(tmp_path):
    """`m2po-lab notebooks`; yields the address of a notebook."""
    config = tmp_path / "config"
    config.mkdir()
    (config / "jupyter_server_config.json").write_text(json.dumps(SETTINGS))
    kinds = ("CONFIG", "DATA", "RUNTIME")
    own = {f"JUPYTER_{kind}_DIR": str(tmp_path / kind.lower()) for kind in kinds}
    code = "import sys; from m2po_lab.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "notebooks", str(tmp_path / "lab"), "--no-browser"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(run.HERE.parent), **own},
    )
    with process:
        yield f"{_address(process)}lab/tree/{NAME}.ipynb?token={TOKEN}"
        process.terminate()
        process.communicate(timeout=60)


def _address(process):
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "http://127.0.0.1:" in line:
            return line[line.index("http://") :].split("lab", 1)[0]
    pytest.fail("JupyterLab did not start:\n" + "".join(lines))


@pytest.fixture
def page(server, tmp_path):
    """The notebook in a browser."""
    if BROWSER is None or DRIVER is None:
        missing = "needs chromium and chromedriver"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    with ExitStack() as stack:
        driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
        stack.callback(driver.quit)
        driver.get(server)
        yield driver


def test_a_notebook_runs_in_jupyterlab_and_a_moved_slider_redraws_the_picture(page):
    def wait(what, name):
        return WebDriverWait(page, SECONDS, 0.3).until(lambda _: what(), f"no {name}")

    def ran():
        return all(count for _, _, count, _ in page.execute_script(CODE))

    def picture():
        return page.find_element(By.CSS_SELECTOR, PICTURE).get_attribute("src")

    def found(selector):
        return page.find_elements(By.CSS_SELECTOR, selector)

    wait(lambda: page.execute_script(READY), "kernel")
    page.execute_script(RUN)
    wait(lambda: not ran(), "start of the run")
    wait(ran, "end of the run")
    place = next(i for i, _, _, text in page.execute_script(CODE) if "lab.slide(" in text)
    page.execute_script(SHOW, place)
    handle = wait(lambda: found(HANDLE) and found(PICTURE) and found(HANDLE)[0], "slider")
    before = picture()
    assert before.startswith("data:image/png")
    handle.send_keys(Keys.ARROW_RIGHT)
    wait(lambda: picture() != before, "other picture")
