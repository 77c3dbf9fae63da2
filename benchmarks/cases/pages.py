"""How fast the pages of a profile react, in the system's Chromium.

Times of a page are measured inside it, from the change of its state to the next picture.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
from playwright.sync_api import Page, sync_playwright
from werkzeug.serving import make_server

from benchmarks.cases.large_runs import ring
from benchmarks.measure import Case, Section
from benchmarks.timing import seconds_of
from bsplib import webui
from bsplib.recording.records import Frame, Run, Trace

if TYPE_CHECKING:
    from bsplib.recording.records import Stack

NPROCS = 16
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
_PASSES = 4
_UNFOLDED = "all=1"

_PICTURE = """
const picture = () => new Promise((done) => requestAnimationFrame(() => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = done;  // after the picture that follows is painted
  port2.postMessage(null);
}));
"""
_CHANGE = f"""async (changes) => {{
  {_PICTURE}
  const {{ update }} = await import("./static/store.js");
  await picture();
  const began = performance.now();
  update(changes);
  await picture();
  return (performance.now() - began) / 1000;
}}"""
_FRAMES = f"""async ([selector, count]) => {{
  {_PICTURE}
  const canvas = document.querySelector(selector);
  const {{ left, top, width, height }} = canvas.getBoundingClientRect();
  const at = {{ clientX: left + width / 2, clientY: top + height / 2, bubbles: true }};
  const times = [];
  await picture();
  for (let i = 0; i < count; i += 1) {{
    const began = performance.now();
    const deltaY = i % 20 < 10 ? -40 : 40;
    canvas.dispatchEvent(new WheelEvent("wheel", {{ ...at, deltaY, cancelable: true }}));
    await picture();
    times.push(performance.now() - began);
  }}
  times.sort((a, b) => a - b);
  return times[Math.floor(times.length / 2)] / 1000;
}}"""


def tree_of_functions(nodes: int) -> Run:
    """Return a run of 16 processes whose call graph is a random tree of about ``nodes`` nodes.

    Half of the nodes are functions, and each of them ends some supersteps.
    """
    rng, functions = np.random.default_rng(7), nodes // 2
    callers = [0, *(int(rng.integers(max(0, (i - 1) // 3), i)) for i in range(1, functions))]
    places = tuple(_stack(number, callers) for number in range(functions))
    return ring(NPROCS, functions * _PASSES, places)


def _stack(number: int, callers: Sequence[int]) -> Stack:
    chain = [number]
    while chain[-1]:
        chain.append(callers[chain[-1]])
    return tuple(
        Frame(f"part{i % 7}.py", f"Solver.stage_{i}" if i else "main", 10 * i, 10 * i + 3)
        for i in reversed(chain)
    )


class _Pages:
    """A trace that is served, and a browser that shows it."""

    def __init__(self, stack: ExitStack, run: Run) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # no line for each request
        server = make_server("127.0.0.1", 0, webui.create_app(Trace((run,))), threaded=True)
        stack.callback(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self._address = f"http://127.0.0.1:{server.server_port}/"
        found = next(filter(None, map(shutil.which, BROWSERS)))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        stack.callback(browser.close)
        self.page: Page = browser.new_page(viewport={"width": 1280, "height": 800})

    def open(self, view: str, drawn: str) -> None:
        """Open a view and wait until an element says that it is drawn."""
        self.page.goto("about:blank")
        self.page.goto(f"{self._address}#{view}")
        self.page.wait_for_selector(drawn)

    def change(self, **changes: object) -> float:
        """Return the seconds from a change of the state to its picture."""
        seconds: float = self.page.evaluate(_CHANGE, changes)
        return seconds

    def frame(self, selector: str) -> float:
        """Return the median seconds of a picture while the wheel zooms."""
        seconds: float = self.page.evaluate(_FRAMES, [selector, 60])
        return seconds


_GRAPH_DRAWN = ".stage[data-nodes]"


def _openings(stack: ExitStack) -> Sequence[Case]:
    """Open the page of a large graph, unfolded."""
    pages = _Pages(stack, tree_of_functions(1000))
    call = partial(seconds_of, partial(pages.open, _UNFOLDED, _GRAPH_DRAWN))
    return [Case("1000 nodes, unfolded", call)]


def _changes(stack: ExitStack) -> Sequence[Case]:
    """Price 1000 nodes anew."""
    pages = _Pages(stack, tree_of_functions(1000))
    pages.open(_UNFOLDED, _GRAPH_DRAWN)
    latencies = cycle((1e-4, 1e-6))
    return [Case("another l", lambda: pages.change(l=next(latencies)))]


def _timeline(stack: ExitStack) -> Sequence[Case]:
    """Zoom the timeline of a million records."""
    run = ring(NPROCS, 10**6 // NPROCS)
    pages = _Pages(stack, run)
    pages.open("view=timeline", ".timeline .ramp")
    return [Case("zoom, a picture", partial(pages.frame, "canvas.heat"))]


SECTIONS = (
    Section("Open a page until its graph is drawn", "page", _openings, 5),
    Section("Change the view of 1000 unfolded nodes", "picture", _changes),
    Section("Timeline of 10^6 records, p = 16", "picture", _timeline, 5),
)
