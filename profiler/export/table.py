"""The formats in which a profile can be written, in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bsplib.errors import UsageError
from bsplib.profiler import format as fmt
from bsplib.profiler.export import chrome, pictures, plain_data, pprof, simgrid, speedscope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import BinaryIO

    from bsplib.profiler.export.request import Request


class Format(NamedTuple):
    """A format: how files in it end, what they hold, and what opens them."""

    name: str
    ending: str
    holds: str
    opened_by: str
    write: Callable[[Request, BinaryIO], None]
    """Writes the run of a request into a file."""
    options: tuple[str, ...] = ()
    """Fields of the request that this format depends on, of ``OPTIONS``."""


OPTIONS = ("metric", "top", "table", "number", "supersteps", "machine", "speed")
"""Options of an export that not all formats have; ``number`` is that of the run."""

_RUN = ("number", "supersteps")
_PRICED = (*_RUN, "machine", "speed")
_PICTURE = ("metric", "top", *_PRICED)
_ROOT = "the shaded call graph"

FORMATS = (
    Format("svg", ".svg", _ROOT, "a browser, Inkscape", pictures.write_svg, _PICTURE),
    Format("png", ".png", _ROOT, "any picture viewer", pictures.write_png, _PICTURE),
    Format("pdf", ".pdf", _ROOT, "any PDF reader", pictures.write_pdf, _PICTURE),
    Format(
        "dot",
        ".dot",
        f"{_ROOT} with its numbers",
        "dot, xdot, pygraphviz",
        pictures.write_dot,
        _PICTURE,
    ),
    Format(
        "graphml",
        ".graphml",
        "the call graph with its numbers",
        "networkx, Gephi, yEd",
        plain_data.write_graphml,
        _PRICED,
    ),
    Format(
        "csv",
        ".csv",
        "a table: nodes, edges, supersteps or processes",
        "a spreadsheet, pandas, R",
        plain_data.write_csv,
        ("table", *_PRICED),
    ),
    Format(
        "json",
        ".json",
        "losses, verdict, nodes, edges: what bsp report --json prints",
        "json.load of Python, jq",
        plain_data.write_json,
        ("metric", *_PRICED),
    ),
    Format(
        "chrome",
        ".trace.json",
        "the course of every process, with arrows and counters",
        "https://ui.perfetto.dev, chrome://tracing",
        chrome.write,
        _RUN,
    ),
    Format(
        "speedscope",
        ".speedscope.json",
        "losses by call stack, and the time of each process",
        "https://www.speedscope.app",
        speedscope.write,
        _PRICED,
    ),
    Format(
        "pprof",
        ".pb.gz",
        "samples of call stacks by process, one value a metric",
        "go tool pprof -http=:",
        pprof.write,
        _PRICED,
    ),
    Format(
        "simgrid",
        ".ti",
        "the actions of every process: computation, messages, barriers",
        "smpirun -replay of SimGrid, on any platform",
        simgrid.write,
        _RUN,
    ),
)
"""The formats that the profiler writes."""


def find(path: Path, name: str | None, formats: Iterable[Format] = FORMATS) -> Format:
    """Return the format with a name; if there is none, the one of the ending of a file.

    Args:
        path: the file to write.
        name: name of the format, or None.
        formats: the formats to choose from.

    Raises:
        UsageError: there is no such format; the text names those that there are.
    """
    known = {form.name: form for form in formats}
    if name is not None:
        if name in known:
            return known[name]
        raise UsageError(f"there is no format {fmt.visible(name)!r}: choose {', '.join(known)}")
    fitting = [form for form in known.values() if path.name.lower().endswith(form.ending)]
    if not fitting:
        endings = ", ".join(form.ending for form in known.values())
        raise UsageError(
            f"the ending of {fmt.visible(str(path))} names no format: use one of {endings}, or "
            f"--format"
        )
    return max(fitting, key=lambda form: len(form.ending))


def check_options(form: Format, given: Iterable[str]) -> None:
    """Refuse options that have no effect on a format.

    Raises:
        UsageError: one of the options has no effect.
    """
    for option in given:
        if option in OPTIONS and option not in form.options:
            shown = "run" if option == "number" else option
            raise UsageError(f"--{shown} has no effect on the format {form.name}: leave it out")
