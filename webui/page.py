"""The page. When served it links to its styles and its script; when saved it contains them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote, urlencode

import jinja2
from markupsafe import Markup

from bsplib.errors import BspError
from bsplib.output_file import PAGE, PAGE_MARK, write_text
from bsplib.profiler.compare.comparison import pairs_by_order
from bsplib.profiler.survey import survey_with_steps
from bsplib.webui.answers import ANSWERS, Json, Query
from bsplib.webui.one_pass import sum_up
from bsplib.webui.opened_runs import Shown
from bsplib.webui.traces import COMPARISON, REPEATS, Traces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsplib.recording.records import Trace
    from bsplib.webui.predicted import ShownModel


STATIC = Path(__file__).parent / "static"
ENTRY = "main"
"""The module that is run; it imports all others."""
MODEL_ENTRY = "predicted"
"""The same of the page of a node model."""
SCRIPT = "script.js"
"""Name of all modules of a served page in one file: eighty files take a browser much longer."""
MODEL = "model.json"
PREDICTED = "predicted.json"
"""Names of the answers of the page of a node model: what it shows everywhere, and at a point."""

_POLICY = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
SERVED_POLICY = (
    f"{_POLICY}; frame-ancestors 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"
)
"""Content-Security-Policy of the served page: only its own files are loaded."""

_UNSAFE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class _Kind:
    """A kind of page: its template, the module that is run, and the end of its title."""

    template: str
    entry: str
    title: str


_PROFILE = _Kind("page.html", ENTRY, "bsp profile")
_PREDICTED = _Kind("predicted.html", MODEL_ENTRY, "bsp prediction")


@dataclass(frozen=True)
class _Asset:
    """A style or script: its address or, in a saved page, its content."""

    url: str
    content: Markup | None = None


def styles() -> list[str]:
    """Return the names of the style sheets: ``base.css`` first, then those of the views."""
    names = sorted(path.name for path in (STATIC / "css").glob("*.css"))
    return ["base.css", *(name for name in names if name != "base.css")]


def served_page(title: str) -> str:
    """Return the page that loads its files and the data of each run from the server."""
    return _served(_PROFILE, title)


def served_model(title: str) -> str:
    """Return the page of a learnt program, which asks the server for its data."""
    return _served(_PREDICTED, title)


def _served(kind: _Kind, title: str) -> str:
    sheets = [_Asset(f"static/css/{name}") for name in styles()]
    known = {"styles": sheets, "script": _Asset(SCRIPT), "meta_policy": ""}
    return _render(kind, title, {"answers": {}}, **known)


def saved_page(*traces_shown: Trace, names: Sequence[str] = (), **shown: Unpack[Shown]) -> str:
    """Return the page with all its files and data: it loads nothing and works offline.

    It compares the runs of the first trace with those of each other one, and holds the account of
    each run on some Machines beside its own.
    """
    for trace in traces_shown:
        for run in trace.runs:
            survey_with_steps(run)
    shown.setdefault("machines", ())
    traces = Traces(*traces_shown, names=names, **shown)
    return _saved(_PROFILE, title_of(traces), {"answers": saved_answers(traces)})


def saved_model(shown: ShownModel) -> str:
    """Return the page of a node model with all its files and data; it works offline.

    Raises:
        UsageError: a value is given of a variable that does not exist.
    """
    return _saved(_PREDICTED, shown.model.program, _answers_of_model(shown))


def _answers_of_model(shown: ShownModel) -> Json:
    from bsplib.webui.predicted import (  # noqa: PLC0415  # imported late
        describe_model,
        saved_predictions,
    )

    predictions = {
        _with_query(PREDICTED, {"point": text} if text else {}): answer
        for text, answer in saved_predictions(shown).items()
    }
    return {"answers": {MODEL: describe_model(shown), **predictions}}


def _saved(kind: _Kind, title: str, data: Json) -> str:
    sheets = [_inlined((STATIC / "css" / name).read_text(encoding="utf-8")) for name in styles()]
    script = _inlined(bundle(STATIC, kind.entry))
    return _render(
        kind,
        title,
        data,
        styles=sheets,
        script=script,
        meta_policy=f"{_POLICY}; script-src {_hashes([script])}; style-src {_hashes(sheets)}",
    )


def saved_answers(traces: Traces) -> Json:
    """Return what the page may ask, by its address, as far as a saved page contains it."""
    overview = traces.overview()
    found: dict[str, Any] = {"traces.json": overview}
    for about in overview:
        for number in range(len(about["runs"])):
            opened = traces.run(about["id"], number)
            if opened.run.repeat is not None:
                address = address_of(about["id"], number, REPEATS, {})
                found[address] = traces.answer(about["id"], number, REPEATS, {})
            sum_up(opened)
            for name, answer in ANSWERS.items():
                for query in answer.saved(opened):
                    address = address_of(about["id"], number, name, query)
                    found[address] = traces.answer(about["id"], number, name, query)
    return found | _comparisons(traces)


def _comparisons(traces: Traces) -> Json:
    """Return how the runs of the first trace changed since those of each other one."""
    found = {}
    for other in range(1, len(traces)):
        counts = len(traces.runs(str(other))), len(traces.runs("0"))
        for before, after in pairs_by_order(*counts):
            query = {"with": f"{other}.{before}"}
            address = address_of("0", after, COMPARISON, query)
            found[address] = traces.answer("0", after, COMPARISON, query)
    return found


def address_of(trace_id: str, number: int, name: str, query: Query) -> str:
    """Return the address of an answer, as the page asks for it."""
    run = f"traces/{trace_id}/runs/{number}"
    path = f"{run}.json" if name == "run" else f"{run}/{name}.json"
    return _with_query(path, query)


def _with_query(path: str, query: Query) -> str:
    words = urlencode(query, quote_via=quote, safe=_PLAIN)
    return f"{path}?{words}" if query else path


_PLAIN = ",!*'()"
"""Characters that the page does not escape in a query, beside those that Python does not."""


def title_of(traces: Traces) -> str:
    """Return the title of the page: the program, or how many traces are shown."""
    return traces.overview()[0]["title"] if len(traces) == 1 else f"{len(traces)} traces"


def write_html(
    trace: Trace,
    out_path: str | os.PathLike[str],
    *,
    before: Sequence[Trace] = (),
    names: Sequence[str] = (),
    force: bool = False,
    **shown: Unpack[Shown],
) -> None:
    """Save the pages of a trace as one HTML file that needs no server and no network.

    The file contains the source of the functions that are shown, as far as it is on this
    computer as it was when it ran (see :mod:`bsplib.profiler.sources`).

    Args:
        trace: the trace; the file contains all its runs.
        out_path: the file to write; it is written completely or not at all.
        before: traces with whose runs those of the trace are compared.
        names: what the traces are called; default: program.
        force: replace any file; otherwise only an earlier page is replaced.
        shown: see :class:`bsplib.webui.opened_runs.Shown`.

    Raises:
        OSError: the file cannot be written, or is there and no earlier page.
    """
    write_text(out_path, saved_page(trace, *before, names=names, **shown), PAGE, force=force)


def write_model_html(
    shown: ShownModel, out_path: str | os.PathLike[str], *, force: bool = False
) -> None:
    """Save the page of a node model as one HTML file that needs no server and no network.

    Args:
        shown: the model, and with what the page opens.
        out_path: the file to write; it is written completely or not at all.
        force: replace any file; otherwise only an earlier page is replaced.

    Raises:
        UsageError: a value is given of a variable that does not exist.
        OSError: the file cannot be written, or is there and no earlier page.
    """
    write_text(out_path, saved_model(shown), PAGE, force=force)


def embedded_json(data: Json) -> Markup:
    """Return JSON for a script element, with no text in it that could end the element."""
    return Markup(json.dumps(data, ensure_ascii=False).translate(_UNSAFE))


def _render(kind: _Kind, title: str, data: Json, **parts: object) -> str:
    title = f"{title} - {kind.title}"
    known = {"title": title, "data": embedded_json(data), "mark": Markup(PAGE_MARK)}
    return _template(kind.template).render(known, **parts)


@cache
def _template(name: str) -> jinja2.Template:
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    return jinja2.Environment(loader=loader, autoescape=True).get_template(name)


def _inlined(text: str) -> _Asset:
    return _Asset("", Markup(text))


def _hashes(assets: list[_Asset]) -> str:
    """Return the hashes by which a policy allows scripts or styles inside the page."""
    digests = [hashlib.sha256(str(asset.content).encode()).digest() for asset in assets]
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


# -- joins the page's modules into one script -----------------------------------------------------
#
# A saved page cannot load modules from files, and its Content-Security-Policy allows a script
# by the hash of its text; a served page is shown sooner with one file than with eighty. Each
# module becomes a function whose result holds what it exports. The modules are written in a
# restricted form, so that no parser is needed::
#
#     import { a, b as c } from "./other.js";   at the beginning of a line, on one line or more
#     export function d() {}                    or: export async function, const or class


_IMPORT = re.compile(r'^import \{([\w\s,]+)\} from "\./([\w-]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const|class) (\w+)", re.MULTILINE)
_RENAMED = re.compile(r"\b(\w+) as (\w+)\b")
_OTHER_FORM = re.compile(r"^\s*(?:import|export)\b.*$", re.MULTILINE)


class BundleError(BspError):
    """A module of the page is not written in the form that can be joined."""


def bundle(folder: Path, entry: str) -> str:
    """Return one script with a module and all modules that it imports.

    Args:
        folder: the folder of the modules.
        entry: name of the module that is run, without ``.js``.

    Raises:
        BundleError: a module imports or exports in another form, or modules import each
            other in a circle; the text names them.
    """
    parts = [_as_function(folder, name) for name in in_order(folder, entry)]
    return '"use strict";\n' + "\n".join(parts)


def in_order(folder: Path, entry: str) -> list[str]:
    """Return the names of a module and all that it imports, each after those it imports.

    Raises:
        BundleError: modules import each other in a circle.
    """
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            circle = " -> ".join((*above[above.index(name) :], name))
            raise BundleError(f"the modules {circle} import each other: move what both need.")
        if name in order:
            return
        for other in imported(_source(folder, name)):
            visit(other, (*above, name))
        order.append(name)

    visit(entry, ())
    return order


def imported(source: str) -> list[str]:
    """Return the names of the modules that a module imports."""
    return [match[2] for match in _IMPORT.finditer(source)]


def _source(folder: Path, name: str) -> str:
    return (folder / f"{name}.js").read_text(encoding="utf-8")


def _as_function(folder: Path, name: str) -> str:
    """Return a module as the declaration of an object with what it exports."""
    source = _source(folder, name)
    exported = ", ".join(match[2] for match in _EXPORT.finditer(source))
    body = _IMPORT.sub(_as_declaration, source)
    body = _EXPORT.sub(r"\1 \2", body)
    if wrong := _OTHER_FORM.search(body):
        raise BundleError(f"{name}.js has a line that cannot be joined: {wrong[0].strip()}")
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def _as_declaration(statement: re.Match[str]) -> str:
    """Return an import as the declaration of the same names."""
    names = _RENAMED.sub(r"\1: \2", statement[1])
    return f"const {{{names}}} = {_variable(statement[2])};"


def _variable(name: str) -> str:
    return "module_" + name.replace("-", "_")
