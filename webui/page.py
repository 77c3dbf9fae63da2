"""The page. When served it links to its style and scripts; when saved it contains them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup

from bsplib.recording.output_file import written_whole
from webui.services import Json, Views

if TYPE_CHECKING:
    from bsplib.recording.records import Trace

STATIC = Path(__file__).parent / "static"
STYLES = ("style.css",)
SCRIPTS = (
    "dom.js",
    "viewport.js",
    "minimap.js",
    "graph.js",
    "pie.js",
    "detail.js",
    "paths.js",
    "main.js",
)
"""In the order in which they depend on each other."""

_POLICY = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
SERVED_POLICY = (
    f"{_POLICY}; frame-ancestors 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"
)
"""Content-Security-Policy of the served page: only its own files are loaded."""

_UNSAFE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class _Asset:
    """A style or script: its address or, in a saved page, its content."""

    url: str
    content: Markup | None = None


def served_page(views: Views) -> str:
    """Return the page that loads its files and the data of each run from the server."""
    return _render(
        views.overview["title"],
        {"overview": views.overview, "runs": {}},
        styles=[_Asset(f"static/{name}") for name in STYLES],
        scripts=[_Asset(f"static/{name}") for name in SCRIPTS],
        meta_policy="",
    )


def saved_page(trace: Trace, *, library: bool = False) -> str:
    """Return the page with all its files and data: it loads nothing and works offline."""
    views = Views(trace, library=library)
    styles, scripts = _inlined(STYLES), _inlined(SCRIPTS)
    return _render(
        views.overview["title"],
        {
            "overview": views.overview,
            "runs": {number: views.run(number) for number in range(len(trace.runs))},
        },
        styles=styles,
        scripts=scripts,
        meta_policy=f"{_POLICY}; script-src {_hashes(scripts)}; style-src {_hashes(styles)}",
    )


def write_html(trace: Trace, out_path: str | os.PathLike[str], *, library: bool = False) -> None:
    """Save the pages of a trace as one HTML file that needs no server and no network.

    Args:
        trace: the trace; the file contains all its runs.
        out_path: the file to write; it is written completely or not at all.
        library: also show the functions of bsplib itself.

    Raises:
        OSError: the file cannot be written, or is a folder, a device or a pipe.
    """
    with written_whole(out_path) as unfinished:
        unfinished.write_text(saved_page(trace, library=library), encoding="utf-8")


def embedded_json(data: Json) -> Markup:
    """Return JSON for a script element, with no text in it that could end the element."""
    return Markup(json.dumps(data, ensure_ascii=False).translate(_UNSAFE))


def _render(title: str, data: Json, **parts: object) -> str:
    return _template().render(title=f"{title} - bsp profile", data=embedded_json(data), **parts)


@cache
def _template() -> jinja2.Template:
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    return jinja2.Environment(loader=loader, autoescape=True).get_template("page.html")


def _inlined(names: tuple[str, ...]) -> list[_Asset]:
    return [_Asset("", Markup((STATIC / name).read_text(encoding="utf-8"))) for name in names]


def _hashes(assets: list[_Asset]) -> str:
    """Return the hashes by which a policy allows scripts or styles inside the page."""
    digests = [hashlib.sha256(str(asset.content).encode()).digest() for asset in assets]
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
