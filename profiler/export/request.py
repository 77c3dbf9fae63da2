"""What an export is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bsplib.errors import UsageError
from bsplib.machine import load_machine
from bsplib.profiler.drawing.picture import MOST_DRAWN, drawing
from bsplib.profiler.drawing.shown_nodes import MOST_SHOWN
from bsplib.profiler.drawing.view import DEFAULT, view_of
from bsplib.profiler.profile import RunProfile
from bsplib.profiler.rates import rates_of_run, rates_on
from bsplib.profiler.repeats import same_runs
from bsplib.profiler.window import restricted, root_supersteps

if TYPE_CHECKING:
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.drawing.picture import Drawing
    from bsplib.profiler.drawing.view import View
    from bsplib.profiler.graph_book import GraphBook
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

    @property
    def run(self) -> Run:
        """The run, or a part of it."""
        return self.profile.run

    @property
    def callgraph(self) -> CallGraph:
        """The call graph of the run."""
        return self.profile.callgraph

    @property
    def book(self) -> GraphBook:
        """What the time of the run was used for."""
        return self.profile.book()

    @cached_property
    def view(self) -> View:
        """The call graph, seen by the metric."""
        return view_of(self.callgraph, self.metric, self.book)

    @cached_property
    def drawing(self) -> Drawing:
        """The picture of the call graph."""
        most = MOST_SHOWN if self.top is None else self.top or MOST_DRAWN
        return drawing(self.callgraph, self.view, min(most, MOST_DRAWN))
