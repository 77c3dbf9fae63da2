import os
import queue
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import webbrowser
from contextlib import ExitStack

import click
import pytest

from bsplib import webui
from bsplib.errors import BspError
from bsplib.profiler import limits
from bsplib.recording.records import Trace
from bsplib.recording.trace import write_trace
from bsplib.webui import app, page, services
from tests.made_runs import frame, run_of, step
from tests.scripted import Script


@pytest.fixture
def client(several_runs_trace):
    return webui.create_app(several_runs_trace).test_client()


def test_the_page_is_served_with_its_files(client):
    answer = client.get("/")
    assert answer.status_code == 200
    files = re.findall(r'(?:src|href)="([^:"]+)"', answer.text)
    assert files == [*(f"static/css/{name}" for name in page.styles()), "script.js"]
    for name in files:
        with client.get(f"/{name}") as file:
            assert file.status_code == 200
            assert file.mimetype in {"text/css", "text/javascript"}


def test_the_script_has_every_module_and_may_be_kept(client):
    answer = client.get("/script.js")
    assert answer.text == page.bundle(page.STATIC, page.ENTRY)
    assert answer.headers["Cache-Control"] == f"private, max-age={app.STATIC_SECONDS}"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("run?from=1", "Give both from and to, or neither of them."),
        ("run?from=-1&to=2", "from is '-1': give a whole number that is not negative."),
        ("run?library=yes", "library is 'yes': give a whole number that is not negative."),
        ("layout?nodes=1,x", "nodes must be numbers below 9, separated by commas."),
        ("layout?nodes=9", "nodes must be numbers below 9, separated by commas."),
    ],
)
def test_a_query_that_means_nothing_is_refused_in_a_sentence(client, query, sentence):
    name, _, values = query.partition("?")
    path = "/traces/0/runs/0.json" if name == "run" else f"/traces/0/runs/0/{name}.json"
    answer = client.get(f"{path}?{values}")
    assert (answer.status_code, answer.text) == (400, sentence)


@pytest.mark.lengthy
def test_several_traces_are_listed_and_one_that_cannot_be_read_says_why(broadcast_trace, tmp_path):
    good, bad = tmp_path / "good.bsp", tmp_path / "bad.bsp"
    write_trace(good, broadcast_trace)
    bad.write_bytes(b"no trace")
    client = webui.create_app(good, str(bad), broadcast_trace).test_client()
    first, second, third = client.get("/traces.json").json
    assert [first["id"], second["id"], third["id"]] == ["0", "1", "2"]
    assert [first["name"], second["name"]] == ["good.bsp", "bad.bsp"]
    assert first["runs"] == [{**run, "elapsed_s": None} for run in third["runs"]]  # not read yet
    assert first["runs"][0]["nprocs"] == 16
    assert (first["error"], second["runs"]) == (None, [])
    assert "bad.bsp" in second["error"]
    assert client.get("/traces/1/runs/0.json").status_code == 503
    assert client.get("/traces/2/runs/0.json").json["run"]["nprocs"] == 16


@pytest.mark.parametrize(
    "path",
    [
        *(f"/traces/0/runs/{end}" for end in ("3.json", "-1.json", "x.json", "0/nothing.json")),
        *("/traces/1/runs/0.json", "/traces/x/runs/0.json", "/other"),
    ],
)
def test_what_is_not_there_is_404(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/", "/traces/0/runs/0.json", "/script.js", "/nothing"])
def test_every_answer_carries_the_policy(client, path):
    with client.get(path) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil:80"])
@pytest.mark.parametrize("path", ["/", "/traces/0/runs/0.json"])
def test_a_site_that_calls_itself_loopback_is_refused(client, host, path):
    answer = client.get(path, headers={"Host": host})
    assert answer.status_code == 403
    assert "bcast" not in answer.text


def test_what_is_too_large_is_said_in_a_sentence(monkeypatch):
    monkeypatch.setattr(limits, "MAX_SHARES", 10)
    made = Script(4)
    for line in range(3):
        step(made, (frame("main", 1, line),), 1e-3)
    client = webui.create_app(Trace((run_of(made),))).test_client()
    answer = client.get("/traces/0/runs/0.json")
    assert (answer.status_code, answer.mimetype) == (503, "text/plain")
    assert answer.text == (
        "the call graph is too large to show: 7 nodes and edges for 4 processes, with 3 places of "
        "supersteps"
    )
    monkeypatch.setattr(services, "describe_graph", lambda *_, **__: pytest.fail("tried twice"))
    assert client.get("/traces/0/runs/0.json").text == answer.text


@pytest.mark.parametrize(
    "path",
    ["/", "/traces/0/runs/0.json", "/static/main.js", "/script.js", "/wrong/", "/wrong/script.js"],
)
def test_who_does_not_know_the_token_gets_nothing(several_runs_trace, path):
    client = webui.create_app(several_runs_trace, token="secret").test_client()
    answer = client.get(path)
    assert answer.status_code == 404
    assert "bcast" not in answer.text
    assert client.get("/secret/").status_code == 200
    assert client.get("/secret/traces/0/runs/0.json").json["run"]["nprocs"] == 4
    for file in ("static/main.js", "script.js"):
        with client.get(f"/secret/{file}") as got:
            assert got.status_code == 200


def test_an_address_for_one_use_leads_on_once(several_runs_trace):
    flask_app = webui.create_app(several_runs_trace, token="secret")
    app.add_single_use_address(flask_app, "/open/key", "/secret/")
    client = flask_app.test_client()
    assert client.get("/open/key", headers={"Host": "evil.example"}).status_code == 403
    first, second = client.get("/open/key"), client.get("/open/key")
    assert (first.status_code, first.headers["Location"]) == (303, "/secret/")
    assert second.status_code == 404
    assert "secret" not in second.text
    assert client.get("/open/other").status_code == 404


@pytest.fixture
def taken_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_port_that_is_taken_is_one_sentence(broadcast_trace, taken_port):
    with pytest.raises(webui.PortError) as caught:
        webui.serve(broadcast_trace, port=taken_port, open_browser=False)
    assert str(caught.value) == (
        f"Port {taken_port} of 127.0.0.1 is in use: choose another, or 0 for any free one."
    )
    assert isinstance(caught.value, BspError)


@pytest.fixture
def visits(monkeypatch):
    """Fetches the page once its address is printed, then presses Ctrl-C."""
    seen = []
    echo = click.echo

    def visit(url):
        with urllib.request.urlopen(url, timeout=30) as answer:
            seen.append((url, answer.status))
        os.kill(os.getpid(), signal.SIGINT)

    def announce(text):
        echo(text)
        url = re.search(r"http://127\.0\.0\.1:\d+/\S+/", text).group()
        threading.Thread(target=visit, args=(url,)).start()

    monkeypatch.setattr(click, "echo", announce)
    return seen


def test_serve_says_where_it_is_and_ends_on_ctrl_c(broadcast_trace, visits, capsys, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail("opened"))
    webui.serve(broadcast_trace, open_browser=False)
    ((url, status),) = visits
    assert status == 200
    assert capsys.readouterr().out == f"The profile is at {url} until Ctrl-C.\n"
    port = int(re.search(r":(\d+)/", url).group(1))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_the_address_that_the_browser_gets_leads_to_the_page(broadcast_trace, monkeypatch):
    seen = queue.SimpleQueue()

    def browse(url):
        with urllib.request.urlopen(url, timeout=30) as answer:
            seen.put((answer.url, answer.status))
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(webbrowser, "open", browse)
    webui.serve(broadcast_trace)
    url, status = seen.get(timeout=30)
    assert status == 200
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{22}/", url)


@pytest.mark.lengthy
def test_a_request_that_comes_byte_by_byte_is_not_waited_for(broadcast_trace, monkeypatch):
    monkeypatch.setattr(app, "REQUEST_SECONDS", 0.5)
    ended = []

    def drip(url):
        port = int(re.search(r":(\d+)/", url).group(1))
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=0.1) as slow:
                deadline = time.monotonic() + 30
                while time.monotonic() < deadline and not ended:
                    try:
                        slow.sendall(b"GET / HTTP/1.1\r\nX: ")
                        ended.extend([True] if slow.recv(1) == b"" else [])
                    except TimeoutError:
                        pass
                    except ConnectionError:
                        ended.append(True)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(webbrowser, "open", drip)
    webui.serve(broadcast_trace)
    assert ended == [True]


@pytest.fixture
def crowd():
    """Connects ``count`` times to the port of an address, and asks for nothing."""
    with ExitStack() as stack:

        def connect(url, count):
            port = int(re.search(r":(\d+)/", url).group(1))
            for _ in range(count):
                waiting = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                waiting.sendall(b"GET / HTTP/1.1\r\n")

        yield connect


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "count"), [(128, 300), (20, 60), (128, 50)])
def test_connections_that_ask_for_nothing_do_not_keep_others_out(
    broadcast_trace, monkeypatch, crowd, limit, count
):
    monkeypatch.setattr(app, "MOST_CONNECTIONS", limit)
    monkeypatch.setitem(app.LIMITS, "channel_timeout", 600)  # so none is closed for its age
    seen = []

    def browse(url):
        try:
            crowd(url, count)
            with urllib.request.urlopen(url, timeout=30) as answer:
                seen.append(answer.status)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(webbrowser, "open", browse)
    webui.serve(broadcast_trace)
    assert seen == [200]


@pytest.mark.slow
def test_where_few_files_may_be_open_idle_connections_are_fewer(broadcast_trace, tmp_path, crowd):
    write_trace(tmp_path / "x.bsp", broadcast_trace)
    view = [sys.executable, "-m", "bsplib", "view", "--no-browser", str(tmp_path / "x.bsp")]
    line = f"ulimit -n 64; exec {shlex.join(view)}"
    pipe = subprocess.PIPE
    with subprocess.Popen(["sh", "-c", line], stdout=pipe, stderr=pipe, text=True) as server:
        url = re.search(r"http://\S+/", server.stdout.readline()).group()
        crowd(url, 100)
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert answer.status == 200
        server.send_signal(signal.SIGINT)
        assert server.communicate(timeout=30)[1] == ""
