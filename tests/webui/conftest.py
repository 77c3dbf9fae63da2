"""Traces made by hand, the pages that show them, and a Chromium to look at them."""

from __future__ import annotations

import re
import shutil
import threading
from contextlib import contextmanager

import pytest
import waitress
from playwright.sync_api import expect, sync_playwright
from waitress import wasyncore

from bsplib import webui
from bsplib.profiler.callgraph import build
from bsplib.recording.records import Trace
from tests.made_runs import broadcast_run, hostile_run, tree_run

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--renderer-process-limit=1",  # else each page that is loaded starts a process of its own
]


expect.set_options(timeout=30_000)  # only ends a hang


class Browser:
    """The system's Chromium, driven by playwright. It is started on first use."""

    def __init__(self):
        self._playwright = self._browser = None

    def start(self):
        if self._browser is None:
            found = next(filter(None, map(shutil.which, BROWSERS)), None)
            if found is None:
                pytest.fail(f"No Chromium on PATH (as {', '.join(BROWSERS)}): install one of them.")
            self._playwright = sync_playwright().start()
            self._browser = self._playwright.chromium.launch(executable_path=found, args=FLAGS)
        return self._browser

    def leave(self, url):
        """Leave the pages of a server that is about to end, since they may still load something."""
        contexts = self._browser.contexts if self._browser is not None else []
        for page in [page for context in contexts for page in context.pages]:
            if page.url.startswith(url):
                page.goto("about:blank")

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
    """A tab of the browser, with what was reported, asked or loaded from elsewhere in it.

    ``expected`` is a part of the reports that are none, such as that of a refused request.
    """

    def __init__(self, browser, width=1280, height=800, expected=None, **more):
        self.context = browser.new_context(viewport={"width": width, "height": height}, **more)
        self.page = self.context.new_page()
        self.troubles = []
        self.expected = expected
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.troubles.extend(elsewhere(request.url)))

    def _hear(self, said):
        if self.expected is None or self.expected not in said.text:
            self.troubles.append(f"{said.type}: {said.text}")

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


@pytest.fixture
def unfold_paths():
    """Opens the fold of the seventeen critical paths, which may be open."""
    return lambda tab: tab.locator("#paths details").evaluate("fold => { fold.open = true; }")


@contextmanager
def served(*traces, **options):
    """Serve the pages of traces; gives their address."""
    with served_app(webui.create_app(*traces, **options)) as url:
        yield url


@contextmanager
def served_app(app):
    """Serve pages by the server that ``bsp view`` uses; gives their address."""
    connections = {}
    server = waitress.create_server(app, map=connections, host="127.0.0.1", port=0)
    is_over = threading.Event()

    def serve():
        while not is_over.is_set():
            wasyncore.loop(timeout=0.05, map=connections, count=1)

    thread = threading.Thread(target=serve)
    thread.start()
    url = f"http://127.0.0.1:{server.effective_port}/"
    try:
        yield url
        BROWSER.leave(url)
    finally:
        is_over.set()
        thread.join()
        server.task_dispatcher.shutdown()
        wasyncore.close_all(connections, ignore_all=True)  # the browser may keep them open


def ids(trace, run=0):
    """Node ids by name."""
    return {node.name: name for name, node in build(trace.runs[run]).graph.nodes(data="node")}


def show(tab, url, state="", *, fresh=True):
    """Show a state of the page, and wait until it shows a run.

    The page is loaded anew. Without ``fresh``, only the address is changed where the tab
    shows this page already, which is faster; what a view keeps to itself stays then.
    """
    if not fresh and tab.url.partition("#")[0] == url:
        tab.evaluate("state => { location.hash = state; }", state)
    else:
        tab.goto("about:blank")  # else a new hash alone would not load the page anew
        tab.goto(f"{url}#{state}" if state else url)
    expect(tab.locator("#detail h2")).to_be_attached()


def go(tab, state):
    """Change the state of an open page by its address, and wait until the page has read it."""
    script = """state => new Promise((done) => {
      addEventListener("popstate", () => requestAnimationFrame(done), { once: true });
      location.hash = `${state}&unique=${performance.now()}`;
    })"""
    tab.evaluate(script, state)


@pytest.fixture(scope="session", name="ids")
def _ids():
    return ids


@pytest.fixture(scope="session", name="go")
def _go():
    return go


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
