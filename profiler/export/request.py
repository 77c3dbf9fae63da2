"""What an export is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from profiler.callgraph import build
from profiler.export.picture import MOST_DRAWN, drawing
from profiler.export.view import DEFAULT, view_of
from profiler.shown import MOST_SHOWN

if TYPE_CHECKING:
    from bsplib.recording.records import Run, Trace
    from profiler.callgraph import CallGraph
    from profiler.export.picture import Drawing
    from profiler.export.view import View


@dataclass(frozen=True)
class Request:
    """A run of a trace, and what of it to write. The parts are computed when they are used."""

    trace: Trace
    position: int = 0
    """Which run of the trace, from 0."""
    metric: str = DEFAULT
    """One of ``profiler.critical.VIEWS``."""
    library: bool = False
    """Whether the functions of bsplib itself are shown, too."""
    top: int | None = None
    """How many nodes a picture has at most; default: as many as can be read."""
    table: str = "nodes"
    """Which table to write, in a format for tables."""

    @property
    def run(self) -> Run:
        """The run."""
        return self.trace.runs[self.position]

    @cached_property
    def callgraph(self) -> CallGraph:
        """The call graph of the run."""
        return build(self.run, library=self.library)

    @cached_property
    def view(self) -> View:
        """The call graph, seen by the metric."""
        return view_of(self.callgraph, self.metric)

    @cached_property
    def drawing(self) -> Drawing:
        """The picture of the call graph."""
        return drawing(self.callgraph, self.view, min(self.top or MOST_SHOWN, MOST_DRAWN))
