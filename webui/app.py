"""The Flask application over one trace, and the server that shows it."""

from __future__ import annotations

import errno
import secrets
import socket
import threading
import time
import webbrowser
from typing import TYPE_CHECKING, Any

import click
import flask
import waitress
from flask.json.provider import DefaultJSONProvider
from waitress import wasyncore
from waitress.channel import HTTPChannel
from werkzeug.sansio.utils import host_is_trusted

from bsplib.errors import BspError
from webui.page import SERVED_POLICY, STATIC, served_page
from webui.services import Views

if TYPE_CHECKING:
    import werkzeug

    from bsplib.recording.records import Trace

HOST = "127.0.0.1"
TRUSTED_HOSTS = (HOST, "localhost")

LIMITS: dict[str, Any] = {
    "threads": 8,
    "connection_limit": 512,
    "channel_timeout": 10,
    "cleanup_interval": 2,
    "max_request_header_size": 2**14,
    "max_request_body_size": 0,
    "asyncore_use_poll": True,
}
"""Of the server: a connection on which nothing comes for 10 s is closed, so that
connections that ask for nothing leave room for those that do."""

REQUEST_SECONDS = 10
"""In which a request has to come whole, from its first byte on."""

_HEADERS = {
    "Content-Security-Policy": SERVED_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _Channel(HTTPChannel):
    """A connection that is closed where a request does not come whole in time.

    The time limit of the server alone would begin anew with every byte.
    """

    _begun_s = 0.0

    def received(self, data: bytes) -> bool:
        """Take a part of a request."""
        now_s = time.monotonic()
        if self.request is None:
            self._begun_s = now_s
        elif now_s - self._begun_s > REQUEST_SECONDS:
            self.will_close = True
            return False
        return bool(super().received(data))


class PortError(BspError, OSError):
    """The port that was asked for is taken, or not this user's to take."""


class _InOrder(DefaultJSONProvider):
    """The metrics and the paths have an order, which sorting would undo."""

    sort_keys = False


def create_app(trace: Trace, *, token: str = "", library: bool = False) -> flask.Flask:
    """Make the application that shows a trace.

    Routes: ``/`` is the page, ``/static/NAME`` its files, ``/runs/N.json`` what it
    shows of run N (404 where the trace has none). Requests for another host than this
    machine's loopback are refused, so that no other site can read a trace by renaming
    itself to 127.0.0.1.

    Args:
        trace: what was recorded.
        token: first part of every address. Other users of this machine can reach its
            loopback too; who does not know the token gets nothing.
        library: also show the functions of bsplib itself.
    """
    root = f"/{token}" if token else ""
    app = flask.Flask(__name__, static_folder=STATIC, static_url_path=f"{root}/static")
    app.json = _InOrder(app)
    views = Views(trace, library=library)

    @app.before_request
    def refuse_other_hosts() -> None:
        if not host_is_trusted(flask.request.headers.get("Host"), TRUSTED_HOSTS):
            flask.abort(403, "These pages are only for this machine: use http://127.0.0.1.")

    @app.after_request
    def add_headers(response: flask.Response) -> flask.Response:
        response.headers.update(_HEADERS)
        return response

    @app.get(f"{root}/")
    def page() -> str:
        return served_page(views)

    @app.get(f"{root}/runs/<int:number>.json")
    def run(number: int) -> flask.Response:
        try:
            return flask.jsonify(views.run(number))
        except IndexError as error:
            flask.abort(404, str(error))
        except BspError as error:  # too large to show
            return flask.Response(str(error), 503, mimetype="text/plain")

    return app


def add_single_use_address(app: flask.Flask, address: str, target: str) -> None:
    """Lead from an address to another one, the first time that it is asked for.

    A browser is started with an address on its command line, which every user of the
    machine can read. So it gets one that is worth nothing once the browser has used it.

    Args:
        app: gets the route.
        address: the path that leads there once.
        target: the path that it leads to.
    """
    unused = [target]

    @app.get(address)
    def lead_on() -> werkzeug.Response:
        try:
            return flask.redirect(unused.pop(), 303)
        except IndexError:
            flask.abort(404, "This address has been used: take the one that bsp view printed.")


def serve(trace: Trace, *, port: int = 0, open_browser: bool = True, library: bool = False) -> None:
    """Serve the pages of a trace on this machine's loopback until Ctrl-C.

    Prints the address, which holds a secret token, once the port is bound.

    Args:
        trace: what was recorded.
        port: where to listen; 0 takes any free port.
        open_browser: whether to show the page in the user's browser.
        library: also show the functions of bsplib itself.

    Raises:
        PortError: the port cannot be had; one sentence says why.
    """
    connections: dict[int, object] = {}
    with _listening(port) as listener:
        token, once = secrets.token_urlsafe(16), f"/open/{secrets.token_urlsafe(16)}"
        app = create_app(trace, token=token, library=library)
        add_single_use_address(app, once, f"/{token}/")
        server = waitress.create_server(app, map=connections, sockets=[listener], **LIMITS)
        server.channel_class = _Channel
        site = f"http://{HOST}:{listener.getsockname()[1]}"
        click.echo(f"The profile is at {site}/{token}/ until Ctrl-C.")
        if open_browser:
            # Some browsers are programs that return when they are closed.
            threading.Thread(target=webbrowser.open, args=(site + once,), daemon=True).start()
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
