"""The Flask application over some traces, and the server that shows it."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import socket
import sys
import threading
import time
import webbrowser
from typing import TYPE_CHECKING, Any, Unpack

import click
import flask
import waitress
from flask.json.provider import DefaultJSONProvider
from waitress import wasyncore
from waitress.channel import HTTPChannel
from werkzeug.sansio.utils import host_is_trusted

from bsplib.errors import BspError
from bsplib.machine import known_machines
from bsplib.webui.opened_runs import AddressError, Shown
from bsplib.webui.page import (
    ENTRY,
    MODEL,
    MODEL_ENTRY,
    PREDICTED,
    SCRIPT,
    SERVED_POLICY,
    STATIC,
    bundle,
    served_model,
    served_page,
    title_of,
)
from bsplib.webui.traces import Traces

with contextlib.suppress(ImportError):  # not on Windows
    import resource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import werkzeug

    from bsplib.recording.records import Trace
    from bsplib.webui.predicted import ShownModel


HOST = "127.0.0.1"
TRUSTED_HOSTS = (HOST, "localhost")

MOST_CONNECTIONS = 128
"""A browser has 6; fewer where the process may open few files."""

LIMITS: dict[str, Any] = {
    "threads": 8,
    "connection_limit": 2 * MOST_CONNECTIONS,  # never reached: then nobody would be let in
    "channel_timeout": 10,
    "cleanup_interval": 2,
    "max_request_header_size": 2**14,
    "max_request_body_size": 1,  # nobody can make the server store what he sends
    "asyncore_use_poll": True,
}
"""Limits of the server: a connection without traffic for 10 s is closed, so that unused
connections cannot block the others."""

REQUEST_SECONDS = 10
"""Within this time of its first byte, a request has to arrive completely."""

STATIC_SECONDS = 60
"""So long a browser may keep the files of the page; data are never kept."""

_HEADERS = {
    "Content-Security-Policy": SERVED_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _Channel(HTTPChannel):
    """A connection that is closed if a request does not arrive completely in time.

    The time limit of the server itself starts again with every byte.
    """

    _begun_s = 0.0

    def __init__(self, server: Any, *connection: Any, **options: Any) -> None:
        """Take a new connection; beyond the limit, the one that was idle for longest is closed."""
        super().__init__(server, *connection, **options)
        idle = [each for each in server.active_channels.values() if not each.requests]
        if len(server.active_channels) > _most_connections() and idle:
            min(idle, key=lambda each: each.last_activity).handle_close()

    def received(self, data: bytes) -> bool:
        """Receive a part of a request."""
        now_s = time.monotonic()
        if self.request is None:
            self._begun_s = now_s
        elif now_s - self._begun_s > REQUEST_SECONDS:
            self.will_close = True
            return False
        return bool(super().received(data))


def _most_connections() -> int:
    """Return how many connections are kept: they get half of the files that may still be opened."""
    if sys.platform != "linux":
        return MOST_CONNECTIONS
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(4, min(MOST_CONNECTIONS, (most - len(os.listdir("/proc/self/fd"))) // 2))


class PortError(BspError, OSError):
    """The requested port is in use, or this user may not use it."""


class _InOrder(DefaultJSONProvider):
    """Keeps the order of metrics and paths, which Flask would sort by default."""

    sort_keys = False


def create_app(
    *traces: Trace | str | os.PathLike[str],
    token: str = "",
    folder: str | os.PathLike[str] | None = None,
    names: Sequence[str] = (),
    **shown: Unpack[Shown],
) -> flask.Flask:
    """Create the application that shows traces.

    Routes: ``/`` is the page, ``/script.js`` its modules in one file, ``/static/NAME`` each of
    its files, ``/traces.json`` the list of the traces, ``/traces/T/runs/N.json`` the data of run
    N of trace T, and ``/traces/T/runs/N/NAME.json`` another answer about it (404 if there is no
    such trace, run or answer). Nothing can be changed.
    Requests for a host name other than the loopback are refused, so that no other
    web site can read a trace by resolving its own name to 127.0.0.1.

    Args:
        traces: traces, or files of traces, which are read when they are first shown.
        token: first part of every address. Other users of this computer can connect to
            its loopback, too, but cannot read anything without the token.
        folder: folder whose traces are shown, too, also those that come there later.
        names: what the traces are called; default: program or file.
        shown: see :class:`Shown`; Machines are offered beside those that come with bsplib.
    """
    root = f"/{token}" if token else ""
    app = _new_app(root, ENTRY)
    shown["machines"] = [*dict.fromkeys((*shown.get("machines", ()), *known_machines()))]
    opened = Traces(*traces, folder=folder, names=names, **shown)

    @app.get(f"{root}/")
    def page() -> str:
        return served_page(title_of(opened))

    @app.get(f"{root}/traces.json")
    def overview() -> flask.Response:
        return flask.jsonify(opened.overview())

    @app.get(f"{root}/traces/<trace>/runs/<int:number>.json", defaults={"name": "run"})
    @app.get(f"{root}/traces/<trace>/runs/<int:number>/<name>.json")
    def answer(trace: str, number: int, name: str) -> flask.Response:
        return flask.jsonify(opened.answer(trace, number, name, flask.request.args))

    return app


def create_model_app(shown: ShownModel, *, token: str = "") -> flask.Flask:
    """Create the application that shows the page of a node model; nothing can be changed.

    Args:
        shown: the model, and with what the page opens.
        token: as for :func:`create_app`.

    Raises:
        UsageError: a value is given of a variable that does not exist.
    """
    from bsplib.webui.predicted import (  # noqa: PLC0415  # the page of a trace needs none of this
        describe_model,
        describe_predictions,
    )

    root = f"/{token}" if token else ""
    app, about = _new_app(root, MODEL_ENTRY), describe_model(shown)

    @app.get(f"{root}/")
    def page() -> str:
        return served_model(shown.model.program)

    @app.get(f"{root}/{MODEL}")
    def model() -> flask.Response:
        return flask.jsonify(about)

    @app.get(f"{root}/{PREDICTED}")
    def predicted() -> flask.Response:
        return flask.jsonify(describe_predictions(shown, flask.request.args))

    return app


def _new_app(root: str, entry: str) -> flask.Flask:
    """Return an application with the files of a page and the guard of its addresses."""
    app = flask.Flask(__name__, static_folder=STATIC, static_url_path=f"{root}/static")
    app.json = _InOrder(app)
    _guard(app)

    @app.get(f"{root}/{SCRIPT}")
    def script() -> flask.Response:
        return flask.Response(bundle(STATIC, entry), mimetype="text/javascript")

    return app


def _guard(app: flask.Flask) -> None:
    """Refuse requests for other hosts, protect every answer, and turn errors into sentences."""

    @app.before_request
    def refuse_other_hosts() -> None:
        if not host_is_trusted(flask.request.headers.get("Host"), TRUSTED_HOSTS):
            flask.abort(403, "These pages are only for this computer: use http://127.0.0.1.")

    @app.after_request
    def add_headers(response: flask.Response) -> flask.Response:
        response.headers.update(_HEADERS)
        if flask.request.endpoint in ("static", "script") and response.status_code == 200:
            response.headers["Cache-Control"] = f"private, max-age={STATIC_SECONDS}"
        return response

    @app.errorhandler(IndexError)
    def not_there(error: IndexError) -> flask.Response:
        return _sentence(error, 404)

    @app.errorhandler(AddressError)
    def wrong(error: BspError) -> flask.Response:
        return _sentence(error, 400)

    @app.errorhandler(BspError)
    def cannot_show(error: BspError) -> flask.Response:  # the run is too large, for example
        return _sentence(error, 503)


def _sentence(error: Exception, status: int) -> flask.Response:
    return flask.Response(str(error), status, mimetype="text/plain")


def add_single_use_address(app: flask.Flask, address: str, target: str) -> None:
    """Redirect from an address to another one, once.

    A browser is started with an address on its command line, which every user of the
    computer can read. So it gets an address that is useless after the browser used it.

    Args:
        app: the application; the route is added to it.
        address: the path that is redirected once.
        target: the path to which it is redirected.
    """
    unused = [target]

    @app.get(address)
    def redirect_once() -> werkzeug.Response:
        try:
            return flask.redirect(unused.pop(), 303)
        except IndexError:
            flask.abort(404, "This address has been used: use the one that bsp view printed.")


def serve(
    *traces: Trace | str | os.PathLike[str],
    port: int = 0,
    open_browser: bool = True,
    folder: str | os.PathLike[str] | None = None,
    names: Sequence[str] = (),
    view: str = "",
    metric: str = "",
    **shown: Unpack[Shown],
) -> None:
    """Serve the pages of some traces on this computer's loopback until Ctrl-C.

    The address, which contains a secret token, is printed once the port is bound.

    Args:
        traces: traces, or files of traces, which are read when they are first shown.
        port: port of the server; 0 for any free port.
        open_browser: whether to show the page in the user's browser.
        folder: folder whose traces are shown, too.
        names: what the traces are called; default: program or file.
        view: the view that is shown first, such as ``compare``.
        metric: what the shades stand for at first, one of ``bsplib.profiler.critical.VIEWS``.
        shown: as for :func:`create_app`.

    Raises:
        PortError: the port cannot be used; the text says why in one sentence.
    """

    def create(token: str) -> flask.Flask:
        return create_app(*traces, token=token, folder=folder, names=names, **shown)

    opens = "&".join(
        f"{name}={value}" for name, value in (("view", view), ("metric", metric)) if value
    )
    _serve("profile", create, port, f"#{opens}" if opens else "", open_browser=open_browser)


def serve_model(shown: ShownModel, *, port: int = 0, open_browser: bool = True) -> None:
    """Serve the page of a node model on this computer's loopback until Ctrl-C.

    Args:
        shown: the model, and with what the page opens.
        port: port of the server; 0 for any free port.
        open_browser: whether to show the page in the user's browser.

    Raises:
        PortError: the port cannot be used; the text says why in one sentence.
        UsageError: a value is given of a variable that does not exist.
    """

    def create(token: str) -> flask.Flask:
        return create_model_app(shown, token=token)

    _serve("prediction", create, port, "", open_browser=open_browser)


def _serve(
    what: str, create: Callable[[str], flask.Flask], port: int, state: str, *, open_browser: bool
) -> None:
    """Serve an application, which is created with a new token, until Ctrl-C."""
    connections: dict[int, object] = {}
    with _listening(port) as listener:
        token, once = secrets.token_urlsafe(16), f"/open/{secrets.token_urlsafe(16)}"
        app = create(token)
        page = f"/{token}/{state}"
        add_single_use_address(app, once, page)
        server = waitress.create_server(app, map=connections, sockets=[listener], **LIMITS)
        server.channel_class = _Channel
        site = f"http://{HOST}:{listener.getsockname()[1]}"
        click.echo(f"The {what} is at {site}{page} until Ctrl-C.")
        if open_browser:
            # In a thread, since starting some browsers returns only when they are closed.
            threading.Thread(target=webbrowser.open, args=(site + once,), daemon=True).start()
        try:
            server.run()  # returns on Ctrl-C
        finally:
            wasyncore.close_all(connections, ignore_all=True)  # browsers may keep them open


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        in_use = error.errno == errno.EADDRINUSE
        why = "is in use" if in_use else f"cannot be used ({error.strerror})"
        raise PortError(
            f"Port {port} of {HOST} {why}: choose another, or 0 for any free one."
        ) from error
