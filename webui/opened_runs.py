"""The runs that are shown, with their call graphs, which are built on first use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

import numpy as np

from bsplib.errors import BspError
from bsplib.machine import known_machines
from bsplib.profiler.callgraph import CallGraph, build
from bsplib.profiler.rates import rates_of_run
from bsplib.profiler.window import restricted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.rates import Rates
    from bsplib.recording.records import Run

_KEPT = 8
"""Objects of a run that are kept: call graphs, and what views make of it."""

_Made = TypeVar("_Made")


class Shown(TypedDict, total=False):
    """How pages show traces."""

    library: bool
    """Whether the functions of bsplib are shown, too, unless the page asks otherwise."""
    sources: Path | None
    """Folder in which source files are looked for, too (:mod:`bsplib.profiler.sources`)."""
    machines: Sequence[str]
    """Names or files of Machines on which the runs can be seen, too."""


class AddressError(BspError, ValueError):
    """The query of an address has a value that means nothing."""


@dataclass(frozen=True)
class RunPart:
    """Which part of a run is asked for."""

    library: bool
    """Whether the functions of bsplib are shown, too."""
    supersteps: tuple[int, int] | None
    """First and last superstep of the root group; None for all."""

    @classmethod
    def of_query(cls, query: Mapping[str, str], *, library: bool = False) -> RunPart:
        """Read the part from the query of an address: ``library``, ``from`` and ``to``.

        Args:
            query: the query; what it leaves out is not restricted.
            library: what counts where the query does not say ``library``.

        Raises:
            QueryError: a value is no number, or only one end of the range is given.
        """
        wanted = number_in(query, "library")
        first, last = number_in(query, "from"), number_in(query, "to")
        if (first is None) != (last is None):
            raise AddressError("Give both from and to, or neither of them.")
        shown = library if wanted is None else bool(wanted)
        return cls(shown, None if first is None or last is None else (first, last))


def number_in(query: Mapping[str, str], key: str) -> int | None:
    """Return a number of a query that is not negative; None if it is not given.

    Raises:
        QueryError: the value is no such number.
    """
    text = query.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise AddressError(f"{key} is {text[:40]!r}: give a whole number that is not negative.")
    return int(text)


class OpenRun:
    """A run of a trace with its call graphs. Threads may share it."""

    def __init__(
        self,
        run: Run,
        *,
        library: bool = False,
        sources: Path | None = None,
        machines: Sequence[str] | None = None,
    ) -> None:
        self.run = run
        self.machines = known_machines() if machines is None else list(machines)
        """Names of the Machines on which it can be seen."""
        self.library = library
        """Whether the functions of bsplib are shown where a query does not say."""
        self.sources = sources
        """Folder in which source files are looked for, too."""
        self._made: OrderedDict[object, object] = OrderedDict()
        self._lock = threading.Lock()

    def part(self, query: Mapping[str, str]) -> RunPart:
        """Return which part of the run a query asks for."""
        return RunPart.of_query(query, library=self.library)

    def whole(self, query: Mapping[str, str]) -> RunPart:
        """Return the part that a query asks for, with all supersteps."""
        return replace(self.part(query), supersteps=None)

    def once(self, name: object, make: Callable[[], _Made]) -> _Made:
        """Return what a view makes of this run: made on first use, then kept for a while.

        Args:
            name: what it is; different objects need different names.
            make: makes it; it must not call this method.
        """
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
                if len(self._made) > _KEPT:
                    self._made.popitem(last=False)
            self._made.move_to_end(name)
            return cast("_Made", self._made[name])

    @property
    def rates(self) -> Rates:
        """What a byte and a superstep of the run cost."""
        return self.once("rates", lambda: rates_of_run(self.run))

    def callgraph(self, part: RunPart) -> CallGraph:
        """Return the call graph of a part of the run; only the first call takes long.

        Raises:
            TooLargeError: the call graph is too large.
        """

        def make() -> CallGraph:
            steps = part.supersteps
            run = self.run if steps is None else restricted(self.run, *steps)
            return build(run, library=part.library)

        return self.once(part, make)


# -- the records that belong to a node of a call graph --------------------------------------------


def records_through(callgraph: CallGraph, node: str) -> NDArray[np.bool_]:
    """Mark the records whose stack passes through a node; none if there is no such node."""
    through = np.zeros(len(callgraph.origins), bool)
    through[list(callgraph.passing.get(node, ()))] = True
    chunks = callgraph.run.table("records").chunks(("stack", "kind"))
    marked = [through[callgraph.origin_of(rows)] for _, rows in chunks]
    return np.concatenate([np.zeros(0, bool), *marked])
