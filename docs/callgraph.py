"""Take the picture of the README anew: ``.venv/bin/python docs/callgraph.py``.

It records 1000 broadcasts among 16 virtual processors, and photographs their page in the
Chromium of this computer. Paths in the picture begin with ``/home/user``, wherever it is taken.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import sync_playwright

from bsplib.recording.records import Run, Trace
from bsplib.recording.trace import read_trace
from bsplib.webui.page import saved_page

ROOT = Path(__file__).resolve().parents[1]
PICTURE = Path(__file__).with_suffix(".png")
HOME = "/home/user/bsplib"
WIDTH, HEIGHT = 1280, 800
SHARPNESS = 2
"""Pixels of the picture for each pixel of the page."""
RUNS = 7
"""Number of runs, of which the quietest is shown: others disturb measured computation."""


def recorded(folder: Path) -> Run:
    """Record the broadcasts once."""
    how = ["-n", "16", "--backend", "sim", "--machine", "shared-memory"]
    line = [sys.executable, "-m", "bsplib.apps.broadcast", *how, "--profile", "broadcast.bsp"]
    subprocess.run(line, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (run,) = read_trace(folder / "broadcast.bsp").runs
    return run


def quietest(folder: Path) -> Run:
    """Record the broadcasts several times, and return the shortest run."""
    return min((recorded(folder) for _ in range(RUNS)), key=lambda run: run.records["end"].max())


def at_home(run: Run) -> Run:
    """Return the run as if this repository were in the folder of a user."""
    stacks = tuple(
        tuple(frame._replace(file=frame.file.replace(str(ROOT), HOME)) for frame in stack)
        for stack in run.stacks
    )
    return replace(run, stacks=stacks, meta={**run.meta, "host": "laptop", "folder": HOME})


def photograph(html: Path, picture: Path) -> None:
    """Open a page, and save a picture of it once its graph is drawn."""
    names = ("chromium", "google-chrome", "chromium-headless-shell")
    chromium = next(filter(None, map(shutil.which, names)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SHARPNESS
        )
        tab.goto(html.as_uri())
        tab.locator(".node").first.wait_for()
        tab.screenshot(path=picture)
        browser.close()


def main() -> None:
    """Take the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        html = folder / "page.html"
        html.write_text(saved_page(Trace((at_home(quietest(folder)),))), encoding="utf-8")
        photograph(html, PICTURE)


if __name__ == "__main__":
    main()
