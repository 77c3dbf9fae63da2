"""The list of traces: files, a folder that changes, and files that are dropped on the page."""

import gc
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import expect
from waitress.adjustments import Adjustments

from bsplib import webui
from bsplib.recording.records import Trace
from bsplib.recording.trace import write_trace
from bsplib.tools.cli import main
from bsplib.webui import app
from bsplib.webui.app import DROPPED_TYPE
from bsplib.webui.page import STATIC
from bsplib.webui.traces import Traces


@pytest.fixture
def make(run_maker, frame, tmp_path):
    """Writes a trace of ``nprocs`` processes into the folder."""

    def make(name, nprocs=2, **meta):
        maker = run_maker(nprocs)
        maker.step((frame("main", 1, 2),), 1e-3)
        path = tmp_path / name
        write_trace(path, Trace((maker.run(**meta),)))
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


def test_an_unchanged_folder_is_not_read_again(make, tmp_path, monkeypatch):
    make("a.bsp")
    traces = Traces(folder=tmp_path)
    first = traces.overview()
    monkeypatch.setattr("bsplib.webui.traces.read_heads", lambda _: pytest.fail("read again"))
    assert traces.overview() == first


def test_a_trace_that_has_been_shown_tells_how_long_it_took(make, tmp_path):
    make("a.bsp")
    traces = Traces(folder=tmp_path)
    traces.answer("0", 0, "run", {})
    assert traces.overview()[0]["runs"][0]["elapsed_s"] == pytest.approx(1e-3)


def test_what_is_no_trace_is_listed_with_the_reason(make, tmp_path):
    (tmp_path / "a\x1b.bsp").write_bytes(b"no trace")
    make("b.bsp")
    traces = Traces(folder=tmp_path)
    (wrong, right) = listed(traces)
    assert wrong[1] == r"a\x1b.bsp"
    assert wrong[2].startswith(r"a\x1b.bsp: is no trace, or not a complete one")
    assert right == ("1", "b.bsp", None)


def test_a_trace_that_comes_later_is_found(make, tmp_path):
    make("b.bsp")
    traces = Traces(folder=tmp_path)
    make("a.bsp")
    assert listed(traces) == [("0", "b.bsp", None), ("1", "a.bsp", None)]
    assert traces.answer("1", 0, "run", {})["run"]["nprocs"] == 2


def test_a_trace_that_was_written_anew_is_read_anew(make, tmp_path):
    make("a.bsp", 2)
    traces = Traces(folder=tmp_path)
    assert traces.answer("0", 0, "run", {})["run"]["nprocs"] == 2
    make("a.bsp", 5)
    assert traces.overview()[0]["runs"][0]["nprocs"] == 5
    assert traces.answer("0", 0, "run", {})["run"]["nprocs"] == 5


def test_a_trace_that_was_mended_can_be_read(make, tmp_path):
    (tmp_path / "a.bsp").write_bytes(b"no trace")
    traces = Traces(folder=tmp_path)
    assert traces.overview()[0]["error"]
    (tmp_path / "a.bsp").unlink()  # nothing but a trace is replaced
    make("a.bsp")
    assert listed(traces) == [("0", "a.bsp", None)]


def test_a_trace_that_is_gone_says_so(make, tmp_path):
    make("a.bsp").unlink()
    path = make("b.bsp")
    traces = Traces(folder=tmp_path)
    path.unlink()
    assert "No such file" in traces.overview()[0]["error"]


# -- files dropped on the page --------------------------------------------------------------


@pytest.fixture
def client(broadcast_trace):
    return webui.create_app(broadcast_trace, token="secret").test_client()


def post(client, content, name="x.bsp", path="/secret/traces", **more):
    more = {"content_type": DROPPED_TYPE} | more
    return client.post(f"{path}?name={name}", data=content, **more)


def test_a_dropped_trace_is_added(client, make):
    content = make("x.bsp", 3).read_bytes()
    answer = post(client, content, "C:\\folder/my trace.bsp")
    assert (answer.status_code, answer.json) == (200, {"id": "1"})
    assert client.get("/secret/traces.json").json[1]["name"] == "my trace.bsp"
    assert client.get("/secret/traces/1/runs/0.json").json["run"]["nprocs"] == 3


def test_a_dropped_file_that_is_no_trace_is_refused_with_its_own_name(client):
    answer = post(client, b"PK no trace", "wrong.bsp")
    assert (answer.status_code, answer.mimetype) == (400, "text/plain")
    assert answer.text.startswith("wrong.bsp: is no trace, or not a complete one")
    assert len(client.get("/secret/traces.json").json) == 1


def test_without_the_token_nothing_is_added(client, make):
    content = make("x.bsp").read_bytes()
    assert post(client, content, path="/traces").status_code == 404
    assert post(client, content, path="/wrong/traces").status_code == 404
    assert post(client, content, headers={"Host": "evil.example"}).status_code == 403
    assert len(client.get("/secret/traces.json").json) == 1


@pytest.mark.parametrize(
    "kind", ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded"]
)
def test_a_form_of_another_site_is_refused(client, make, kind):
    answer = post(client, make("x.bsp").read_bytes(), content_type=kind)
    assert answer.status_code == 415


def test_a_file_larger_than_allowed_is_refused(client, make, monkeypatch):
    content = make("x.bsp").read_bytes()
    monkeypatch.setattr(app, "MAX_FILE_BYTES", len(content) - 1)
    answer = post(client, content)
    assert answer.status_code == 400
    assert answer.text.startswith(f"x.bsp has {len(content)} bytes: a dropped file may have")


def test_all_dropped_files_together_are_limited(client, make, monkeypatch):
    content = make("x.bsp").read_bytes()
    monkeypatch.setattr(app, "MAX_ALL_BYTES", 2 * len(content))
    assert [post(client, content).status_code for _ in range(3)] == [200, 200, 400]


def test_no_descriptor_of_a_dropped_file_stays_open(client, make):
    content = make("x.bsp").read_bytes()
    before = len(os.listdir("/proc/self/fd"))
    for number in range(1, 6):
        assert post(client, content).status_code == 200
        assert client.get(f"/secret/traces/{number}/runs/0.json").status_code == 200
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_nothing_of_a_dropped_file_stays_on_the_disk(client, make, tmp_path, monkeypatch):
    content = make("x.bsp").read_bytes()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    assert post(client, content).status_code == 200
    assert post(client, b"no trace").status_code == 400
    assert list(scratch.iterdir()) == []


@pytest.fixture
def parse():
    """Lets the server's parser receive the beginning of a request."""

    def parse(request):
        parser = app._channel("/secret/traces").parser_class(Adjustments(**app.LIMITS))
        parser.received(request.replace("\n", "\r\n").encode())
        return parser

    return parse


@pytest.mark.parametrize(
    "request_",
    [
        "POST /traces HTTP/1.1\nContent-Length: 9\n\n",
        "POST /wrong/traces HTTP/1.1\nContent-Length: 1000000\n\n",
        "GET /secret/ HTTP/1.1\nContent-Length: 1\n\n",
        "POST /secret/traces HTTP/1.1\nTransfer-Encoding: chunked\n\n",
        f"POST /secret/traces HTTP/1.1\nContent-Length: {app.MAX_FILE_BYTES + 1}\n\n",
    ],
)
def test_the_server_takes_no_body_but_of_a_dropped_file(parse, request_):
    parser = parse(request_)
    assert parser.completed
    assert parser.error is not None


def test_the_server_takes_the_body_of_a_dropped_file(parse):
    size = app.MAX_FILE_BYTES
    parser = parse(f"POST /secret/traces?name=x HTTP/1.1\nContent-Length: {size}\n\n")
    assert (parser.completed, parser.error) == (False, None)
    parser = parse("GET /secret/ HTTP/1.1\n\n")
    assert (parser.completed, parser.error) == (True, None)


def test_the_page_states_the_limit_of_the_server():
    source = Path(STATIC, "drop.js").read_text(encoding="utf-8")
    assert int(re.search(r"MAX_FILE_BYTES = (\d+);", source)[1]) == app.MAX_FILE_BYTES


# -- in the browser -------------------------------------------------------------------------

DROP = """({name, bytes}) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(bytes)], name));
    for (const type of ["dragenter", "dragover", "drop"]) {
        const event = new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true});
        document.body.dispatchEvent(event);
    }
}"""


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


@pytest.mark.browser
def test_a_file_dropped_on_the_page_is_opened(tab, broadcast_url, make, show):
    content = make("mine.bsp", 6).read_bytes()
    show(tab, broadcast_url)
    tab.evaluate(DROP, {"name": "mine.bsp", "bytes": list(content)})
    expect(tab.locator(".facts")).to_contain_text("6 processes")
    expect(tab.get_by_label("Trace", exact=True)).to_contain_text("mine.bsp")
    expect(tab.locator(".drop")).to_be_hidden()
    tab.go_back()
    expect(tab.locator(".facts")).to_contain_text("16 processes")


@pytest.mark.browser
@pytest.mark.slow
def test_a_file_can_be_chosen_instead(tab, broadcast_url, make, show):
    show(tab, broadcast_url)
    with tab.expect_file_chooser() as chooser:
        tab.get_by_role("button", name="Open…").click()
    chooser.value.set_files(make("mine.bsp", 3))
    expect(tab.locator(".facts")).to_contain_text("3 processes")


@pytest.mark.browser
@pytest.mark.slow
def test_a_dropped_file_that_is_no_trace_is_said_in_words(open_tab, broadcast_url, show):
    tab = open_tab(expected="status of 400")
    show(tab, broadcast_url)
    tab.evaluate(DROP, {"name": "notes.txt", "bytes": [1, 2, 3]})
    expect(tab.get_by_role("status")).to_contain_text("notes.txt: is no trace")


@pytest.mark.browser
def test_a_saved_page_says_that_it_cannot_open_files(tab, broadcast_trace, tmp_path, show):
    out = tmp_path / "page.html"
    webui.write_html(broadcast_trace, out)
    show(tab, out.as_uri())
    expect(tab.get_by_role("button", name="Open…")).to_have_count(0)
    tab.evaluate(DROP, {"name": "x.bsp", "bytes": [1]})
    expect(tab.get_by_role("status")).to_contain_text("bsp view shows them")


# -- bsp view FOLDER ------------------------------------------------------------------------


@pytest.fixture
def view(tmp_path, monkeypatch):
    """Runs bsp view with a folder; tells with what the pages were served."""
    served = []
    monkeypatch.setattr(webui, "serve", lambda *traces, **more: served.append((traces, more)))

    def view(*options):
        result = CliRunner().invoke(main, ["view", str(tmp_path), *options])
        return result, served

    return view


def test_bsp_view_serves_a_folder(view, make, tmp_path):
    make("a.bsp")
    result, [(traces, options)] = view("--no-browser")
    assert result.exit_code == 0
    assert (traces, options["folder"], options["open_browser"]) == ((), tmp_path, False)


def test_bsp_view_says_that_a_folder_has_no_trace(view, tmp_path):
    (tmp_path / "notes.txt").touch()
    result, served = view()
    assert (result.exit_code, served) == (1, [])
    assert result.output == f"Error: There is no trace (*.bsp) in the folder {tmp_path}.\n"


@pytest.mark.parametrize("option", ["--html", "--compare"])
def test_bsp_view_writes_and_compares_no_folder(view, make, tmp_path, option):
    make("a.bsp")
    result, served = view(option, str(tmp_path / "other"))
    assert (result.exit_code, served) == (1, [])
    assert result.output == f"Error: {tmp_path} is a folder: choose one of its traces.\n"
