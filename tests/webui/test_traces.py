"""The list of traces: files, and a folder that changes."""

import pytest
from playwright.sync_api import expect
from waitress.adjustments import Adjustments
from waitress.parser import HTTPRequestParser

from bsplib import webui
from bsplib.recording.records import Trace
from bsplib.recording.trace import write_trace
from bsplib.webui import app
from bsplib.webui.traces import Traces
from tests.commands import run_bsp
from tests.made_runs import frame, run_of, step
from tests.scripted import Script


@pytest.fixture
def make(tmp_path):
    """Writes a trace of ``nprocs`` processes into the folder."""

    def make(name, nprocs=2, **meta):
        made = Script(nprocs)
        step(made, (frame("main", 1, 2),), 1e-3)
        path = tmp_path / name
        write_trace(path, Trace((run_of(made, **meta),)))
        return path

    return make


def listed(traces):
    return [(about["id"], about["name"], about["error"]) for about in traces.overview()]


def test_the_traces_of_a_folder_are_listed_by_name(make, tmp_path):
    make("b.bsp", 3, program="b.py", started="2026-01-02T03:04:05+00:00")
    make("a.bsp")
    (tmp_path / "notes.txt").touch()
    (tmp_path / ".bsp-unfinished.bsp").touch()
    traces = Traces(folder=tmp_path)
    assert listed(traces) == [("0", "a.bsp", None), ("1", "b.bsp", None)]
    about = traces.overview()[1]
    assert about["title"] == "b.py"
    assert about["runs"] == [
        {
            "title": "run 1",
            "nprocs": 3,
            "backend": "shm",
            "elapsed_s": None,
            "started": "2026-01-02T03:04:05+00:00",
            "complete": True,
            "repeat": None,
        }
    ]
    assert about["opening"] == 0


def test_listing_a_folder_reads_no_records(make, tmp_path, monkeypatch):
    make("a.bsp")
    monkeypatch.setattr("bsplib.webui.traces.read_trace", lambda _: pytest.fail("read"))
    assert listed(Traces(folder=tmp_path)) == [("0", "a.bsp", None)]


def test_what_is_no_trace_is_listed_with_the_reason(make, tmp_path):
    (tmp_path / "a\x1b.bsp").write_bytes(b"no trace")
    make("b.bsp")
    traces = Traces(folder=tmp_path)
    (wrong, right) = listed(traces)
    assert wrong[1] == r"a\x1b.bsp"
    assert wrong[2].startswith(r"a\x1b.bsp: is no trace, or not a complete one")
    assert right == ("1", "b.bsp", None)


def test_a_trace_that_was_written_anew_is_read_anew(make, tmp_path):
    make("a.bsp", 2)
    traces = Traces(folder=tmp_path)
    assert traces.answer("0", 0, "run", {})["run"]["nprocs"] == 2
    make("a.bsp", 5)
    assert traces.overview()[0]["runs"][0]["nprocs"] == 5
    assert traces.answer("0", 0, "run", {})["run"]["nprocs"] == 5


def test_a_trace_that_is_gone_says_so(make, tmp_path):
    make("a.bsp").unlink()
    path = make("b.bsp")
    traces = Traces(folder=tmp_path)
    path.unlink()
    assert "No such file" in traces.overview()[0]["error"]


# -- no request may have a body ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "is_taken"),
    [
        ("POST /secret/traces HTTP/1.1\nContent-Length: 9\n\n", False),
        ("GET /secret/ HTTP/1.1\nContent-Length: 1\n\n", False),
        ("POST /secret/ HTTP/1.1\nTransfer-Encoding: chunked\n\n5\nhello\n0\n\n", False),
        ("GET /secret/ HTTP/1.1\n\n", True),
    ],
)
def test_the_server_takes_no_request_with_a_body(request_, is_taken):
    parser = HTTPRequestParser(Adjustments(**app.LIMITS))
    rest = request_.replace("\n", "\r\n").encode()
    while rest and not parser.completed:
        rest = rest[parser.received(rest) :]
    assert parser.completed
    assert (parser.error is None) == is_taken


# -- in the browser -------------------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.slow
def test_a_folder_can_be_walked_in_the_page(tab, make, tmp_path, served, show):
    (tmp_path / "a.bsp").write_bytes(b"no trace")
    make("b.bsp", 2, program="sort.py", started="2026-01-02T03:04:05+00:00")
    make("c.bsp", 5)
    with served(folder=tmp_path) as url:
        show(tab, url)
        expect(tab.locator("h1")).to_have_text("sort.py")
        picker = tab.get_by_label("Trace", exact=True)
        options = picker.locator("option")
        expect(options.nth(0)).to_contain_text("a.bsp: is no trace")
        expect(options.nth(0)).to_be_disabled()
        expect(options.nth(1)).to_contain_text("b.bsp: sort.py, 2 processes, 2 Jan 2026")
        picker.select_option(index=2)
        expect(tab.locator(".facts")).to_contain_text("5 processes")
        make("d.bsp", 7)
        tab.reload()
        picker.select_option(index=3)
        expect(tab.locator(".facts")).to_contain_text("7 processes")


# -- bsp view FOLDER ------------------------------------------------------------------------


@pytest.fixture
def view(tmp_path, monkeypatch):
    """Runs bsp view with a folder; tells with what the pages were served."""
    served = []
    monkeypatch.setattr(webui, "serve", lambda *traces, **more: served.append((traces, more)))

    def view(*options):
        result = run_bsp("view", tmp_path, *options)
        return result, served

    return view


def test_bsp_view_serves_a_folder(view, make, tmp_path):
    make("a.bsp")
    result, [(traces, options)] = view("--no-browser")
    assert result.exit_code == 0
    assert (traces, options["folder"], options["open_browser"]) == ((), tmp_path, False)


@pytest.mark.parametrize("option", ["--html", "--compare"])
def test_bsp_view_writes_and_compares_no_folder(view, make, tmp_path, option):
    make("a.bsp")
    result, served = view(option, str(tmp_path / "other"))
    assert (result.exit_code, served) == (1, [])
    assert result.output == f"Error: {tmp_path} is a folder: choose one of its traces.\n"
