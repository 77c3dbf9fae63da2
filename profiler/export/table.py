"""What an export is asked for, and the formats in which a profile can be written, in one table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from bsplib.errors import UsageError
from bsplib.machine import load_machine
from bsplib.profiler import format as fmt
from bsplib.profiler.drawing.picture import MOST_DRAWN, MOST_SHOWN, drawing
from bsplib.profiler.drawing.view import DEFAULT, view_of
from bsplib.profiler.export import chrome, graph_files, pprof, simgrid, speedscope
from bsplib.profiler.profile import RunProfile
from bsplib.profiler.rates import rates_of_run, rates_on
from bsplib.profiler.repeats import same_runs
from bsplib.profiler.window import restricted, root_supersteps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import BinaryIO

    from bsplib.profiler.drawing.picture import Drawing
    from bsplib.profiler.drawing.view import View
    from bsplib.recording.records import Run, Trace


@dataclass(frozen=True)
class Request:
    """A run of a trace, and what of it to write. The parts are computed when they are used."""

    trace: Trace
    position: int = 0
    """Which run of the trace, from 0."""
    metric: str = DEFAULT
    """One of ``bsplib.profiler.critical.VIEWS``."""
    library: bool = False
    """Whether the functions of bsplib itself are shown, too."""
    top: int | None = None
    """How many nodes a picture has at most; default: as many as can be read."""
    table: str = "nodes"
    """Which table to write, in a format for tables."""

    supersteps: tuple[int, int] | None = None
    """Numbers of the first and the last superstep of the root group; default: all."""

    machine: str | None = None
    """Name or file of the Machine on which the run is timed anew; default: as it was."""
    speed: str | None = None
    """Speed of a process of that Machine, as in ``bsp predict``."""

    @cached_property
    def profile(self) -> RunProfile:
        """The run, or the part of it in these supersteps, at the rates of the whole run.

        Raises:
            UsageError: there is no such Machine, or it lacks a figure that is needed.
        """
        run = self.trace.runs[self.position]
        part = run if self.supersteps is None else restricted(run, *self.supersteps)
        if len(part.table("records")) == 0 and len(run.table("records")):
            last = int(root_supersteps(run).max())
            first, end = self.supersteps or (0, 0)
            raise UsageError(
                f"there are no supersteps from {first} to {end}: those of the run are 0 to {last}"
            )
        return self._profile_of(part, self.position, run)

    @property
    def repeats(self) -> list[RunProfile]:
        """The run among its repeats; alone where only a part of it is asked for."""
        if self.supersteps is not None:
            return [self.profile]
        runs = self.trace.runs
        groups = same_runs([run.repeat for run in runs])
        (mine,) = (group for group in groups if self.position in group)
        return [
            self.profile if at == self.position else self._profile_of(runs[at], at, runs[at])
            for at in mine
        ]

    def _profile_of(self, part: Run, position: int, whole: Run) -> RunProfile:
        """Return the profile of a run, or of a part of it at the rates of the whole one."""
        if self.machine is None:
            rates = rates_of_run(whole)
        else:
            rates = rates_on(load_machine(self.machine), whole, speed=self.speed)
        return RunProfile(part, position + 1, library=self.library, chosen=rates)

    @cached_property
    def view(self) -> View:
        """The call graph, seen by the metric."""
        return view_of(self.metric, self.profile.book())

    @cached_property
    def drawing(self) -> Drawing:
        """The picture of the call graph."""
        most = MOST_SHOWN if self.top is None else self.top or MOST_DRAWN
        return drawing(self.profile.callgraph, self.view, min(most, MOST_DRAWN))


# -- the formats -----------------------------------------------------------------------------------


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
    Format("svg", ".svg", _ROOT, "a browser, Inkscape", graph_files.write_svg, _PICTURE),
    Format("png", ".png", _ROOT, "any picture viewer", graph_files.write_png, _PICTURE),
    Format("pdf", ".pdf", _ROOT, "any PDF reader", graph_files.write_pdf, _PICTURE),
    Format(
        "dot",
        ".dot",
        f"{_ROOT} with its numbers",
        "dot, xdot, pygraphviz",
        graph_files.write_dot,
        _PICTURE,
    ),
    Format(
        "graphml",
        ".graphml",
        "the call graph with its numbers",
        "networkx, Gephi, yEd",
        graph_files.write_graphml,
        _PRICED,
    ),
    Format(
        "csv",
        ".csv",
        "a table: nodes, edges, supersteps or processes",
        "a spreadsheet, pandas, R",
        graph_files.write_csv,
        ("table", *_PRICED),
    ),
    Format(
        "json",
        ".json",
        "losses, verdict, nodes, edges: what bsp report --json prints",
        "json.load of Python, jq",
        graph_files.write_json,
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
