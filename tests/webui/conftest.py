"""Traces made by hand, the pages that show them, and a Chromium to look at them."""

from __future__ import annotations

import logging
import re
import shutil
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright
from werkzeug.serving import make_server

import webui
from bsplib.recording.records import (
    NO_CPU,
    RECORD,
    TRAFFIC,
    Direction,
    Frame,
    Run,
    Trace,
    root_group,
)
from bsplib.sync_kinds import Kind

NS = 1_000_000_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE_NAMES = (
    "<script>alert('name')</script>",
    "<img src=x onerror=alert(1)>",
    "\"quoted\" & 'quoted' &lt;b&gt;",
    "back\\Nslash\\l\\G",
    "<b>html?</b>",
    "-->]]></svg><script>alert(2)</script>",
    "Größe.naïve.<lambda>.数据并行",
    "bell\x07null\x00escape\x1b[31m",
    "lone\udc80surrogate\u2028line",
    "right-to-left \u202e override",
    "a_very_long_name." * 30,
)


class RunMaker:
    """Collects supersteps of a root group, then makes the Run."""

    def __init__(self, nprocs):
        self.nprocs = nprocs
        self.stacks = {}
        self.records = []
        self.traffic = []
        self.clock = np.zeros(nprocs, dtype=np.int64)
        self.superstep = 0

    def step(self, stack, work_s, calls_s=0.0, exchange_s=0.0, sends=(), kind=Kind.SYNC):
        """End a superstep; ``sends`` holds (source, destination, bytes)."""
        rows = np.zeros(self.nprocs, dtype=RECORD)
        rows["pid"] = np.arange(self.nprocs)
        rows["superstep"] = self.superstep
        rows["cpu"] = NO_CPU
        rows["kind"] = kind
        rows["stack"] = self.stacks.setdefault(stack, len(self.stacks))
        rows["comm_calls"] = np.round(np.asarray(calls_s) * NS)
        rows["start"] = self.clock
        rows["arrive"] = self.clock + np.round(np.asarray(work_s) * NS) + rows["comm_calls"]
        last = kind == Kind.END
        rows["released"] = rows["arrive"] if last else rows["arrive"].max()
        rows["end"] = rows["released"] + (0 if last else round(exchange_s * NS))
        first = len(self.records) * self.nprocs
        self.traffic += [(first + pid, to, Direction.OUT, size, 1) for pid, to, size in sends]
        self.records.append(rows)
        self.clock = rows["end"].copy()
        self.superstep += 1

    def run(self, **meta):
        complete = meta.pop("complete", True)
        return Run(
            nprocs=self.nprocs,
            groups=(root_group(self.nprocs),),
            stacks=tuple(self.stacks),
            records=np.concatenate(self.records),
            traffic=np.array(self.traffic, dtype=TRAFFIC),
            complete=complete,
            meta={"program": "bcast.py", "backend": "shm", **meta},
        )


def frame(function, first_line, line, file="/home/user/bcast.py"):
    return Frame(file, function, first_line, line)


def broadcast_run(nprocs=16, onestage=250, twostage=500, size=40_000, **meta):
    """The program of figure 3 of Jarvis et al.: foo and bar share the one-stage broadcast."""
    maker = RunMaker(nprocs)
    rng = np.random.default_rng(1)
    others = range(1, nprocs)
    piece = size // nprocs
    one = frame("bcast_onestage", 12, 18)
    scatter, exchange = frame("bcast_twostage", 24, 34), frame("bcast_twostage", 24, 41)
    everyone = [(i, j, piece) for i in range(nprocs) for j in range(nprocs) if i != j]

    def uneven(root_s, rest_s):
        work_s = rest_s * rng.uniform(0.9, 1.1, nprocs)
        work_s[0] = root_s
        return work_s

    def bcast_onestage(above):
        work_s = uneven(39e-3, 4e-3)
        sends = [(0, pid, size) for pid in others]
        maker.step((*above, one), work_s, uneven(2e-3, 1e-4), 37e-3, sends)

    def bcast_twostage(above):
        sends = [(0, pid, piece) for pid in others]
        maker.step((*above, scatter), uneven(2.7e-3, 1.1e-3), 2e-4, 2.4e-3, sends)
        maker.step((*above, exchange), uneven(6.7e-3, 6.6e-3), 4e-4, 6.4e-3, everyone)

    main_foo, main_bar = frame("main", 60, 63), frame("main", 60, 64)
    for _ in range(onestage):
        bcast_onestage((main_foo, frame("foo", 46, 48)))
    for _ in range(onestage):
        bcast_onestage((main_bar, frame("bar", 51, 54)))
    for _ in range(twostage):
        bcast_twostage((main_bar, frame("bar", 51, 56)))
    maker.step((frame("main", 60, 65),), 1e-4, kind=Kind.END)
    return maker.run(**meta)


def hostile_run():
    """Two processes, and functions whose names try everything."""
    maker = RunMaker(2)
    for number, name in enumerate(HOSTILE_NAMES):
        inner = frame(name, 10 * number + 5, 10 * number + 7, file=f"/tmp/{name}.py")
        maker.step((frame("main", 1, 2), inner), (1e-3, number * 1e-3), 0, 1e-4, [(0, 1, 8)])
    return maker.run(program="</script><script>alert('program')</script>")


def tree_run(nodes, nprocs=4, seed=7):
    """About so many nodes, functions and cost centres, a few of them shared."""
    rng = np.random.default_rng(seed)
    maker = RunMaker(nprocs)
    functions = nodes // 2
    parent = [0, *(int(rng.integers(max(0, (i - 1) // 3), i)) for i in range(1, functions))]
    for number in range(functions):
        chain = [number]
        while chain[-1]:
            chain.append(parent[chain[-1]])
        stack = tuple(
            frame(f"Solver.stage_{i}" if i else "main", 10 * i, 10 * i + 3, file=f"part{i % 7}.py")
            for i in reversed(chain)
        )
        scale = float(rng.lognormal(-6, 1.5))
        sends = [(0, 1, int(rng.integers(1, 10**6)))] if nprocs > 1 else []
        maker.step(stack, scale * rng.uniform(0.2, 1, nprocs), 0, scale / 3, sends)
    return maker.run(program="solver.py")


class Browser:
    """The system's Chromium, driven by playwright. It is started on first use."""

    def __init__(self):
        self._playwright = self._browser = None

    def start(self):
        if self._browser is None:
            found = next(filter(None, map(shutil.which, BROWSERS)), None)
            if found is None:
                pytest.fail(
                    f"No Chromium on PATH (as {', '.join(BROWSERS)}): install package chromium."
                )
            self._playwright = sync_playwright().start()
            self._browser = self._playwright.chromium.launch(executable_path=found, args=FLAGS)
        return self._browser

    def close(self):
        if self._browser is not None:
            self._browser.close()
            self._playwright.stop()
            self._browser = None


BROWSER = Browser()


@pytest.hookimpl(trylast=True)  # the tabs of the last test are closed before
def pytest_runtest_teardown(item, nextitem):
    """Close the browser after the last test of this folder: it is started once for all files."""
    if nextitem is None or nextitem.path.parent != item.path.parent:
        BROWSER.close()


class Tab:
    """A tab of the browser, with what was reported, asked or loaded from elsewhere in it."""

    def __init__(self, browser, width=1280, height=800, **more):
        self.context = browser.new_context(viewport={"width": width, "height": height}, **more)
        self.page = self.context.new_page()
        self.troubles = []
        self.page.on("console", lambda said: self.troubles.append(f"{said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.troubles.extend(elsewhere(request.url)))

    def _dismiss(self, dialog):
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()


def elsewhere(url):
    return [] if re.match(r"http://127\.0\.0\.1:|file://|data:", url) else [f"loads {url}"]


@pytest.fixture
def open_tab():
    """Opens tabs of given sizes; nothing may be reported or loaded from elsewhere in them."""
    tabs = []

    def open_tab(**options):
        tabs.append(Tab(BROWSER.start(), **options))
        return tabs[-1].page

    yield open_tab
    for tab in tabs:
        tab.context.close()
    assert [trouble for tab in tabs for trouble in tab.troubles] == []


@pytest.fixture(scope="module")
def _shared_tab():
    tab = Tab(BROWSER.start())
    yield tab
    tab.context.close()


@pytest.fixture
def tab(_shared_tab):
    """A tab of 1280 x 800 pixels, in which the same holds; one for all tests of a file."""
    yield _shared_tab.page
    troubles, _shared_tab.troubles = _shared_tab.troubles, []
    assert troubles == []


@contextmanager
def served(*traces):
    """Serve the pages of traces; gives their address."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # not a line for each request
    server = make_server("127.0.0.1", 0, webui.create_app(*traces), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def show(tab, url, state=""):
    """Open the page in a tab, with the state in its address, and wait until it shows a run."""
    tab.goto("about:blank")  # else a new hash alone would not load the page anew
    tab.goto(f"{url}#{state}" if state else url)
    expect(tab.locator("#detail h2")).to_be_attached()


@pytest.fixture(scope="session", name="served")
def _served():
    return served


@pytest.fixture(scope="session", name="show")
def _show():
    return show


@pytest.fixture(scope="session")
def broadcast_url(broadcast_trace):
    with served(broadcast_trace) as url:
        yield url


@pytest.fixture(scope="session", name="run_maker")
def _run_maker():
    return RunMaker


@pytest.fixture(scope="session", name="frame")
def _frame():
    return frame


@pytest.fixture(scope="session", name="tree_run")
def _tree_run():
    return tree_run


@pytest.fixture(scope="session")
def broadcast_trace():
    """Figure 3 of the paper, with fewer rounds."""
    return Trace((broadcast_run(onestage=5, twostage=10),))


@pytest.fixture(scope="session")
def hostile_trace():
    return Trace((hostile_run(),))


@pytest.fixture(scope="session")
def several_runs_trace():
    return Trace(
        (
            broadcast_run(nprocs=4, onestage=2, twostage=3),
            broadcast_run(nprocs=1, onestage=2, twostage=3),
            broadcast_run(
                nprocs=8,
                onestage=1,
                twostage=1,
                complete=False,
                error="AbortError: it was enough. [process 3, superstep 2, bcast.py:34]",
            ),
        )
    )
