"""The Flask application over one trace, and the server that shows it."""

from __future__ import annotations

import errno
import socket
import threading
import webbrowser
from typing import TYPE_CHECKING

import click
import flask
import waitress
from flask.json.provider import DefaultJSONProvider
from waitress import wasyncore
from werkzeug.sansio.utils import host_is_trusted

from bsplib.errors import BspError
from webui.page import SERVED_POLICY, STATIC, served_page
from webui.services import Views

if TYPE_CHECKING:
    from bsplib.records import Trace

HOST = "127.0.0.1"
TRUSTED_HOSTS = (HOST, "localhost")

_HEADERS = {
    "Content-Security-Policy": SERVED_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class PortError(BspError, OSError):
    """The port that was asked for is taken, or not this user's to take."""


class _InOrder(DefaultJSONProvider):
    """The metrics and the paths have an order, which sorting would undo."""

    sort_keys = False


def create_app(trace: Trace) -> flask.Flask:
    """Make the application that shows a trace.

    Routes: ``/`` is the page, ``/static/NAME`` its files, ``/runs/N.json`` what it
    shows of run N (404 where the trace has none). Requests for another host than this
    machine's loopback are refused, so that no other site can read a trace by renaming
    itself to 127.0.0.1.
    """
    app = flask.Flask(__name__, static_folder=STATIC, static_url_path="/static")
    app.json = _InOrder(app)
    views = Views(trace)

    @app.before_request
    def refuse_other_hosts() -> None:
        if not host_is_trusted(flask.request.headers.get("Host"), TRUSTED_HOSTS):
            flask.abort(403, "These pages are only for this machine: use http://127.0.0.1.")

    @app.after_request
    def add_headers(response: flask.Response) -> flask.Response:
        response.headers.update(_HEADERS)
        return response

    @app.get("/")
    def page() -> str:
        return served_page(views)

    @app.get("/runs/<int:number>.json")
    def run(number: int) -> flask.Response:
        try:
            return flask.jsonify(views.run(number))
        except IndexError as error:
            flask.abort(404, str(error))

    return app


def serve(trace: Trace, *, port: int = 0, open_browser: bool = True) -> None:
    """Serve the pages of a trace on this machine's loopback until Ctrl-C.

    Prints the address once the port is bound.

    Args:
        trace: what was recorded.
        port: where to listen; 0 takes any free port.
        open_browser: whether to show the page in the user's browser.

    Raises:
        PortError: the port cannot be had; one sentence says why.
    """
    connections: dict[int, object] = {}
    with _listening(port) as listener:
        server = waitress.create_server(
            create_app(trace), map=connections, sockets=[listener], threads=8
        )
        url = f"http://{HOST}:{listener.getsockname()[1]}/"
        click.echo(f"The profile is at {url} until Ctrl-C.")
        if open_browser:
            # Some browsers are programs that return when they are closed.
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        try:
            server.run()  # returns on Ctrl-C
        finally:
            wasyncore.close_all(connections, ignore_all=True)  # some browser may hold one open


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        why = "is taken" if taken else f"cannot be used ({error.strerror})"
        raise PortError(
            f"Port {port} of {HOST} {why}: choose another, or 0 for any free one."
        ) from error
